"""How a draft is distilled from its target; nothing here is needed to run a pair."""
