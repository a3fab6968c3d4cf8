"""A seeded writer of short, simple English pieces: the storyteller's training text.

Stories come from the frames in ``stories``; counting, lists, dialogues, questions, rhymes and
letters are composed here. What a piece introduces (names, objects, owners, numbers) it recalls
later on, so a model has to remember in order to continue well.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from batchspec.storyteller import words
from batchspec.storyteller.stories import FRAMES, INTERLUDE, OPENING

SENTENCE_START = re.compile(r"((?:^|[.!?] )\"?)([a-z])")
WRONG_ARTICLE = re.compile(r"\b([Aa])(?= (?:[aeiou]|hon))")


@dataclass(frozen=True)
class Character:
    """Someone a piece talks about."""

    name: str
    role: str
    relation: str
    subject: str
    him: str
    his: str


def capitalize_sentences(text: str) -> str:
    """Write the first letter of every sentence large."""
    return SENTENCE_START.sub(lambda match: match[1] + match[2].upper(), text)


def correct_articles(text: str) -> str:
    """Write "an" where "a" stands before a vowel."""
    return WRONG_ARTICLE.sub(r"\1n", text)


def join_phrases(phrases: list[str]) -> str:
    """Join phrases the way English does: "a, b and c"."""
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def pick_characters(random: Random, count: int) -> list[Character]:
    """Pick people and named animals with different names."""
    characters = []
    for name in random.sample(words.GIRLS + words.BOYS, count):
        girl = name in words.GIRLS
        pronouns = ("she", "her", "her") if girl else ("he", "him", "his")
        relatives = "sister aunt cousin friend" if girl else "brother uncle cousin friend"
        relation = random.choice(words.word_list(relatives))
        kind = random.random()
        if kind < 0.35:
            role = relation = random.choice(words.ANIMALS)
        elif kind < 0.55:
            role = random.choice(words.PEOPLE)
        else:
            role = "girl" if girl else "boy"
        characters.append(Character(name, role, relation, *pronouns))
    return characters


def pick_objects(random: Random, count: int) -> list[tuple[str, str]]:
    """Pick different objects, each as (look, thing), such as ("red", "kite")."""
    looks = random.sample(words.COLORS + words.LOOKS, count)
    return list(zip(looks, random.sample(words.THINGS, count), strict=True))


def cast_scene(random: Random) -> dict[str, str]:
    """Choose who and what a story is about: a value for every name used in the frames."""
    hero, friend = pick_characters(random, 2)
    objects = pick_objects(random, 3)
    places = random.sample(words.PLACES, 2)
    spots = random.sample(words.SPOTS, 3)
    animals = random.sample([a for a in words.ANIMALS if a not in (hero.role, friend.role)], 3)
    traits = random.sample(words.TRAITS, 2)
    number, added = random.randint(2, 10), random.randint(2, 9)
    count = random.choice(words.COUNTABLE)
    scene = {
        "hero": hero.name, "role": hero.role, "relation": hero.relation,
        "he": hero.subject, "him": hero.him, "his": hero.his,
        "friend": friend.name, "fhe": friend.subject, "fhis": friend.his,
        "trait": traits[0], "a_trait": f"a {traits[0]}", "trait2": traits[1],
        "place": places[0], "place2": places[1],
        "spot": spots[0], "spot2": spots[1], "spot3": spots[2],
        "animal": animals[0], "animal2": animals[1], "animal3": animals[2],
        "number": words.NUMBERS[number], "number2": words.NUMBERS[added],
        "total": words.NUMBERS[number + added], "less": words.NUMBERS[number + added - 1],
        "count": count, "counts": f"{count}s", "food": random.choice(words.FOODS),
        "good": random.choice(words.GOOD_FEELINGS), "bad": random.choice(words.BAD_FEELINGS),
        "weather": random.choice(words.WEATHERS), "day": random.choice(words.DAYS),
        "habit": random.choice(words.HABITS),
    }  # fmt: skip
    for (look, thing), slot, look_slot in zip(
        objects, ("thing", "second", "third"), ("look", "look2", "look3"), strict=True
    ):
        scene |= {slot: thing, look_slot: look, f"a_{slot}": f"a {look} {thing}"}
    return scene


def write_story(random: Random) -> str:
    """Tell one of the story frames, beat by beat."""
    scene = cast_scene(random)
    frame = random.choice(FRAMES)
    interludes = random.sample(INTERLUDE, random.choice([0, 0, 1, 2, 3]))
    beats = [random.choice(beat) for beat in frame]
    return tell(random, [*beats[:-1], *interludes, beats[-1]], scene)


def tell(random: Random, templates: list[str], scene: dict[str, str]) -> str:
    """Fill templates from a scene and join the sentences."""
    sentences = []
    for template in templates:
        action, action2 = random.sample(words.ACTIONS, 2)
        told = template.format(**scene, action=action, action2=action2)
        sentences.append(capitalize_sentences(told))
    return split_paragraphs(random, [sentence for sentence in sentences if sentence])


def split_paragraphs(random: Random, sentences: list[str]) -> str:
    """Join sentences, now and then with a new line in place of a blank."""
    breaks = random.random() < 0.3
    text = sentences[0]
    for sentence in sentences[1:]:
        text += ("\n" if breaks and random.random() < 0.3 else " ") + sentence
    return text


def write_counting(random: Random) -> str:
    """Count up, down, or by twos, in words or digits, and say where it ended."""
    first, step = random.choice([(1, 1), (1, 1), (1, 1), (2, 2), (3, 1), (5, 5)])
    last = min(20, first + step * random.randint(8, 18))
    values = list(range(first, last + 1, step))
    down = random.random() < 0.3
    if down:
        values.reverse()
    in_digits = random.random() < 0.3
    names = [str(value) if in_digits else words.NUMBERS[value] for value in values]
    (person,) = pick_characters(random, 1)
    things = f"{random.choice(words.COUNTABLE)}s"
    way = "down" if down else "up"
    opening = random.choice([
        "", "", "", "Let us count. ", f"Count {way}: ", f"{person.name} can count: ",
        f"Counting {way}: ", "Count with me: ", f"{person.name} counted the {things}: ",
        f"How many {things} are there? ", f"We count the {things}: ",
    ])  # fmt: skip
    counted = ", ".join(names)
    counted = counted if opening.endswith(": ") else counted.capitalize()
    ends = random.sample([
        f"\"{names[-1].capitalize()}!\" said {person.name}.",
        f"The first was {names[0]} and the last was {names[-1]}.",
        f"{person.name} stopped at {names[-1]}.",
        f"That makes {len(values)} numbers." if in_digits else "And that is all.",
        "Ready or not, here I come!" if not down else "Lift off!",
        f"There were {names[-1]} {things}." if not down else f"No {things} were left.",
    ], 2)  # fmt: skip
    return f"{opening}{counted}. {' '.join(ends)}"


def write_counted_verse(random: Random) -> str:
    """Count in verses: one apple for Mia, two apples for Tom, and so on."""
    friends = pick_characters(random, random.randint(3, 7))
    count = random.choice(words.COUNTABLE)
    template = random.choice([
        "{number} {things} for {name},", "{name} has {number} {things}.",
        "{number} {things}, said {name}.",
    ])  # fmt: skip
    lines = []
    for number, friend in enumerate(friends, start=1):
        things = count if number == 1 else f"{count}s"
        line = template.format(number=words.NUMBERS[number], things=things, name=friend.name)
        lines.append(line[0].upper() + line[1:])
    lines.append(f"How many {count}s has {friends[-1].name}? {words.NUMBERS[len(friends)]}!")
    return capitalize_sentences("\n".join(lines))


def write_list(random: Random) -> str:
    """List the things somewhere, then take them out one by one."""
    (person,) = pick_characters(random, 1)
    holder = random.choice(words.word_list("bag box basket chest drawer wagon backpack barrel"))
    objects = pick_objects(random, random.randint(3, 5))
    phrases = [f"a {look} {thing}" for look, thing in objects]
    opening = random.choice([
        f"Things in the {holder}: ", f"In the {holder}: ", f"{person.name} has a {holder}. In it: ",
        f"List of things in the {holder} of {person.name}: ", f"What is in the {holder}? ",
        f"{person.name} packed a {holder}: ", f"{person.name}'s {holder}: ",
    ])  # fmt: skip
    separator = random.choice([", ", ", ", "\n- "])
    listed = separator.join(phrases)
    if separator != ", ":
        listed = f"\n- {listed}"
        opening = opening.rstrip()
    elif not opening.endswith(": "):
        listed = listed.capitalize()
    verb = random.choice(["takes out", "gives away", "sells", "cleans"])
    order = [
        f"{ordinal} {person.name} {verb} the {random.choice([f'{look} {thing}', thing])}."
        for ordinal, (look, thing) in zip(
            ["First", "Then", "Next", "After that", "Last"], objects, strict=False
        )
    ]
    end = random.choice([f"Now the {holder} is empty.", "That is all.", "Nothing is left."])
    return f"{opening}{listed}." + "\n" + " ".join([*order, end])


def write_shopping(random: Random) -> str:
    """Write a shopping list with amounts, and check it in the shop."""
    (person,) = pick_characters(random, 1)
    foods = random.sample(words.EDIBLE, random.randint(3, 5))
    amounts = [random.randint(2, 12) for _ in foods]
    opening = random.choice([
        "Shopping list:", f"{person.name} wrote a list:", "Things to buy:", "We need:",
        f"{person.name} goes shopping. The list says:", "Please buy:",
    ])  # fmt: skip
    lines = [f"{n} {food}s" for n, food in zip(amounts, foods, strict=True)]
    in_line = random.random() < 0.4
    listed = " " + ", ".join(lines) + "." if in_line else "".join(f"\n- {line}" for line in lines)
    where = random.choice(words.PLACES)
    bought = [f"{words.NUMBERS[n]} {food}s" for n, food in zip(amounts, foods, strict=True)]
    end = random.choice([
        f"In the {where}, {person.name} bought {join_phrases(bought)}.",
        f"{person.name} came home with {join_phrases(bought)}.",
        f"\"Do you have {bought[0]}?\" asked {person.name}. \"Yes, and {bought[1]} too.\"",
    ])  # fmt: skip
    return f"{opening}{listed}\n{end}"


def ask_fact(random: Random) -> tuple[str, str]:
    """Ask about a sound, a home, a color, an opposite, a tool or a sum."""
    animal, sound = random.choice(list(words.SOUNDS.items()))
    dweller, home = random.choice(list(words.HOMES.items()))
    colored, color = random.choice(list(words.COLORED.items()))
    left, right = random.choice(list(words.OPPOSITES.items()))
    use, tool = random.choice(list(words.TOOLS.items()))
    a, b = random.randint(1, 10), random.randint(1, 10)
    first, second, total = words.NUMBERS[a], words.NUMBERS[b], words.NUMBERS[a + b]
    day = random.randrange(7)
    return random.choice([
        (f"What does the {animal} say?", f"The {animal} says {sound}."),
        (f"Where does the {dweller} live?", f"The {dweller} lives {home}."),
        (f"What color is the {colored}?", f"The {colored} is {color}."),
        (f"What is the opposite of {left}?", f"The opposite of {left} is {right}."),
        (f"What do you need for {use}?", f"For {use} you need {tool}."),
        (f"What is {first} plus {second}?", f"{first} plus {second} is {total}."),
        (f"What is {a} + {b}?", f"{a} + {b} = {a + b}."),
        (f"What is {total} minus {first}?", f"{total} minus {first} is {second}."),
        (f"What day comes after {words.DAYS[day]}?",
         f"After {words.DAYS[day]} comes {words.DAYS[(day + 1) % 7]}."),
        (f"What number comes after {first}?", f"After {first} comes {words.NUMBERS[a + 1]}."),
    ])  # fmt: skip


def write_questions(random: Random) -> str:
    """Ask and answer a few general questions."""
    question_mark, answer_mark = random.choice([("Q: ", "A: "), ("Q: ", "A: "), ("", "")])
    separator = random.choice([" ", "\n"])
    lines = []
    for _ in range(random.randint(3, 7)):
        question, answer = ask_fact(random)
        answer = capitalize_sentences(answer)
        lines.append(f"{question_mark}{question}{separator}{answer_mark}{answer}")
    return "\n".join(lines)


def write_owners(random: Random) -> str:
    """Say who owns what and where it is, then ask about it."""
    people = pick_characters(random, random.randint(2, 5))
    objects = pick_objects(random, len(people))
    spots = random.sample(words.SPOTS, len(people))
    facts, questions = [], []
    has = random.choice(["has", "owns", "holds"])
    for person, (look, thing), spot in zip(people, objects, spots, strict=True):
        phrase = f"{look} {thing}"
        facts.append(f"{person.name} {has} a {phrase}.")
        questions.append((f"Who {has} the {thing}?", f"{person.name} {has} the {thing}."))
        what = has.rstrip("s") if has != "has" else "have"
        questions.append((f"What does {person.name} {what}?",
                          f"{person.name} {has} a {phrase}."))  # fmt: skip
        questions.append((f"What is the {thing} like?", f"The {thing} is {look}."))
        if random.random() < 0.5:
            facts.append(f"The {thing} is {spot}.")
            questions.append((f"Where is the {thing}?", f"The {thing} is {spot}."))
    asked = random.sample(questions, min(len(questions), random.randint(3, 6)))
    told = " ".join(facts)
    if random.random() < 0.5:
        return "\n".join([f"Q: {told} {asked[0][0]}", f"A: {asked[0][1]}"] + [
            f"Q: {question}\nA: {answer}" for question, answer in asked[1:]])  # fmt: skip
    return told + " " + " ".join(f"{question} {answer}" for question, answer in asked)


def write_dialogue(random: Random) -> str:
    """Let two people talk about a thing, its place and its owner."""
    one, two, owner = (person.name for person in pick_characters(random, 3))
    (look, thing), (look2, other) = pick_objects(random, 2)
    spot, place = random.choice(words.SPOTS), random.choice(words.PLACES)
    food, day = random.choice(words.FOODS), random.choice(words.DAYS)
    turns = [
        (f"Hello, {two}.", f"Hello, {one}. How are you?"),
        (f"I am {random.choice(words.GOOD_FEELINGS)}. And you?",
         f"I am a bit {random.choice(words.BAD_FEELINGS)}."),
        (f"Do you have my {thing}?", f"No, {owner} has your {thing}."),
        (f"Where is the {look} {thing}?", f"The {thing} is {spot}."),
        (f"Whose {thing} is this?", f"It is the {thing} of {owner}."),
        (f"Did you see {owner}?", f"Yes, I saw {owner} in the {place}."),
        (f"Will you come to the {place} on {day}?", f"Yes, I will come on {day}."),
        (f"Can I have some {food}?", f"Yes, here is some {food} for you."),
        ("What is in your bag?", f"In my bag is a {look2} {other}."),
        (f"I like your {other}.", f"Thank you. The {other} was a present from {owner}."),
    ]  # fmt: skip
    chosen = [turns[i] for i in sorted(random.sample(range(len(turns)), random.randint(3, 6)))]
    chosen.append(random.choice([(f"Good bye, {two}.", f"Good bye, {one}."),
                                 ("Thank you.", "You are welcome."),
                                 (f"See you on {day}.", f"See you, {one}.")]))  # fmt: skip
    return format_turns(random, one, two, chosen)


def format_turns(random: Random, one: str, two: str, turns: list[tuple[str, str]]) -> str:
    """Write a dialogue as a play or with quotation marks."""
    if random.random() < 0.4:
        return "\n".join(f"{one}: {said}\n{two}: {reply}" for said, reply in turns)
    lines = []
    for said, reply in turns:
        for speaker, text in ((one, said), (two, reply)):
            verb = "asked" if text.endswith("?") else "said"
            quoted = f"{text[:-1]}," if text.endswith(".") else text
            lines.append(f'"{quoted}" {verb} {speaker}.')
    return random.choice([" ", "\n"]).join(lines)


def write_rhyme(random: Random) -> str:
    """Rhyme in couplets with a refrain that returns."""
    trait = random.choice(words.TRAITS)
    families = random.sample(words.RHYMES, random.randint(2, 4))
    hero = random.choice(families[0])
    refrain = random.choice([
        f"Hey ho, little {hero}, hey ho!", f"Sing, {trait} {hero}, sing!",
        f"Oh my, said the {hero}, oh my!", f"Round and round goes the {hero}.",
        f"Good night, {trait} {hero}, good night.",
    ])  # fmt: skip
    lines: list[str] = []
    for number, family in enumerate(families):
        a, b, c = random.sample([word for word in family if word != hero], 3)
        a = hero if number == 0 else a
        lines += random.choice([
            (f"The {trait} {a} sat near the {b},", f"and dreamed all day about a {c}."),
            (f"I saw a {a} beside a {b},", f"and with them came a little {c}."),
            (f"There was a {a}, there was a {b},", f"and no one knew about the {c}."),
            (f"Little {a}, where is your {b}?", f"It went to town to buy a {c}."),
            (f"One for the {a}, two for the {b},", f"three for the {trait} little {c}."),
        ])  # fmt: skip
        lines.append(refrain)
    return "\n".join(lines)


def write_week(random: Random) -> str:
    """Tell what happened on each day of a week, with growing numbers."""
    (person,) = pick_characters(random, 1)
    start, length = random.randrange(7), random.randint(3, 6)
    verb = random.choice(["ate", "found", "bought", "drew", "sold", "lost"])
    items = random.sample(words.COUNTABLE, length)
    same = random.random() < 0.4
    lines = [random.choice([
        f"{person.name} was very hungry.", f"This is the week of {person.name}.",
        f"{person.name} had a busy week.", f"My {person.relation} {person.name} is strange.", "",
    ])]  # fmt: skip
    for offset in range(length):
        number = offset + 1
        item = (items[0] if same else items[offset]) + ("" if number == 1 else "s")
        day = words.DAYS[(start + offset) % 7]
        lines.append(f"On {day}, {person.name} {verb} {words.NUMBERS[number]} {item}.")
    last_day = words.DAYS[(start + length) % 7]
    lines.append(random.choice([
        f"On {last_day}, {person.subject} slept all day.", f"And on {last_day}? Nothing at all.",
        f"On {last_day}, {person.name} was {random.choice(words.GOOD_FEELINGS)}.",
    ]))  # fmt: skip
    return " ".join(line for line in lines if line)


def write_nested(random: Random) -> str:
    """Nest places inside places, then walk back out again."""
    place = random.choice(words.PLACES)
    holders = words.word_list("house room box bag basket drawer tent chest barrel jar hat boat")
    inner = random.sample(holders, random.randint(2, 4))  # fmt: skip
    look = random.choice(words.COLORS + words.LOOKS)
    thing = random.choice([thing for thing in words.THINGS if thing not in inner])
    chain = [place, *inner]
    opening = random.choice(["In", "Deep in", "Once, in", "Far away, in"])
    lines = [f"{opening} the {chain[0]} there was a {chain[1]}."]
    lines += [f"In the {a} there was a {b}." for a, b in pairwise(chain[1:])]
    lines.append(f"And in the {chain[-1]} there was a {look} {thing}.")
    back = [f"the {thing} in the {chain[-1]}"]
    back += [f"the {inside} in the {around}" for inside, around in pairwise(chain[::-1])]
    lines.append(f"{', '.join(back).capitalize()}.")
    (person,) = pick_characters(random, 1)
    lines.append(random.choice([f"The {thing} was {look}.", f"It belonged to {person.name}.",
                                f"{person.name} took the {look} {thing} home."]))  # fmt: skip
    return " ".join(lines)


def write_letter(random: Random) -> str:
    """Write a short letter that names its writer and reader again at the end."""
    reader, writer = pick_characters(random, 2)
    (look, thing), (look2, other) = pick_objects(random, 2)
    place, day = random.choice(words.PLACES), random.choice(words.DAYS)
    body = random.sample([
        f"thank you for the {look} {thing}. I like the {thing} very much.",
        f"I am in the {place}. The {place} is very {random.choice(['big', 'old', 'pretty'])}.",
        f"please come and see me on {day}. On {day} we can go to the {place}.",
        f"I have a {look2} {other} for you. I put the {other} in a box.",
        f"today I saw a {random.choice(words.ANIMALS)}, and it {random.choice(words.ACTIONS)}.",
        f"how are you? I am {random.choice(words.GOOD_FEELINGS)}.",
    ], random.randint(2, 4))  # fmt: skip
    sign = random.choice(["Your friend,", "Love,", "Yours,", "Best wishes,"])
    closing = random.choice(
        ["", f" Good bye, {reader.name}!", f" See you on {day}, {reader.name}!"]
    )
    text = capitalize_sentences(" ".join(body))
    return f"Dear {reader.name},\n{text}{closing}\n{sign}\n{writer.name}"


def write_recipe(random: Random) -> str:
    """Give numbered steps that use each thing of the first line."""
    food = random.choice(words.FOODS)
    items = random.sample(words.EDIBLE, 3)
    amounts = [words.NUMBERS[random.randint(2, 9)] for _ in items]
    needed = [f"{n} {item}s" for n, item in zip(amounts, items, strict=True)]
    vessel = random.choice(words.word_list("pot pan bowl cup bucket"))
    opening = random.choice([f"How to make {food}:", f"To make {food}, you need",
                             f"My {food} needs", f"For the {food} take"])  # fmt: skip
    steps = [
        f"Put the {items[0]}s in a {vessel}.",
        f"Add the {items[1]}s and stir.",
        f"Wash the {items[2]}s and put them in the {vessel} too.",
        random.choice([f"Wait for {amounts[0]} minutes.", "Let it cook for an hour."]),
        random.choice([f"Eat the {food} while it is warm.", f"Share the {food} with a friend."]),
    ]
    marks = [f"{number}. " for number in range(1, 6)] if random.random() < 0.5 else [""] * 5
    separator = "\n" if marks[0] else " "
    lines = [mark + step for mark, step in zip(marks, steps, strict=True)]
    return f"{opening} {join_phrases(needed)}.{separator}{separator.join(lines)}"


def write_good_night(random: Random) -> str:
    """Say what is in a room, then say good night to each."""
    (person,) = pick_characters(random, 1)
    place = random.choice(words.PLACES)
    objects = pick_objects(random, random.randint(3, 4))
    phrases = [f"a {look} {thing}" for look, thing in objects]
    greeting = random.choice(["Good night", "Good morning", "Good bye", "Hello"])
    opening = random.choice([
        f"In the {place} of {person.name} there was", f"In the {place} I can see",
        f"{person.name} has", "Look, there is", f"{person.name} looked around and saw",
    ])  # fmt: skip
    lines = [f"{opening} {join_phrases(phrases)}."]
    lines += [f"{greeting}, {look} {thing}." for look, thing in objects]
    lines.append(f"{greeting}, {person.name}.")
    return random.choice([" ", "\n"]).join(lines)


def write_tall_tale(random: Random) -> str:
    """Open like a story, then go on freely with loosely joined events."""
    scene = cast_scene(random)
    events = random.sample([
        "Then {he} {action}.", "{hero} {action}.", "{friend} {action}.",
        "The {animal} {action} {spot}.", "{hero} saw a {animal} {spot}.",
        "They {action}.", "{hero} and {friend} {action}.", "\"Look, {friend}!\" said {hero}.",
        "{hero} found {a_thing} {spot2}.", "{a_third} lay {spot3}.",
        "{hero} ate {number} {counts}.", "The {animal2} gave {hero} {a_second}.",
        "\"Where is {hero}?\" asked {friend}.", "It was {weather} in the {place}.",
    ], random.randint(5, 9))  # fmt: skip
    ending = random.choice([
        "{hero} was {good}.", "{friend} was {good}.", "Then {hero} went home.", "The end.",
        "{hero} told {friend} all about it.", "It was a {weather} day.",
    ])  # fmt: skip
    return tell(random, [random.choice(OPENING), *events, ending], scene)


def write_countdown_song(random: Random) -> str:
    """Sing of a herd that loses one of its own in every verse."""
    herd, spot = random.choice(words.HERDS), random.choice(words.SPOTS)
    look = random.choice(["little", random.choice(words.COLORS)])
    action = random.choice(["ran away", "fell down", "went home", "fell asleep", "got lost"])
    verses = []
    for number in range(random.randint(3, 8), 0, -1):
        animals = herd if number > 1 else herd[:-1]
        verb = "were" if number > 2 else "was"
        left = words.NUMBERS[number - 1] if number > 1 else "none"
        verses.append(f"{words.NUMBERS[number].capitalize()} {look} {animals} sat {spot}. "
                      f"One {action}, and then there {verb} {left}.")  # fmt: skip
    return "\n".join(verses)


def write_own_tale(random: Random) -> str:
    """Tell something in the first person."""
    scene = cast_scene(random)
    opening = random.choice([
        "I have a {trait} {animal}. My {animal} is called {hero}.", "I went to the {place}.",
        "Yesterday I went to the {place} with my friend {friend}.", "My name is {hero}.",
        "I am {hero}, and I live near the {place}.", "We live in the {place}.",
        "When I was little, I had {a_thing}.", "I like the {place}.", "I am a {trait} {role}.",
        "My {animal} is very {trait}.", "We went to the {place} on {day}.",
    ])  # fmt: skip
    events = random.sample([
        "I have {a_thing} in my bag.", "{friend} gave me {a_second}.", "I put the {thing} {spot}.",
        "My {animal} {action}.", "Then I {action}.", "I saw a {animal2} {spot2}.",
        "On {day}, {friend} and I ate {number} {counts}.", "We {action}.", "I was very {good}.",
        "\"Where is my {thing}?\" I asked. \"It is {spot},\" said {friend}.",
        "I gave the {look} {thing} to {friend}.", "{friend} {action}.",
    ], random.randint(4, 8))  # fmt: skip
    ending = random.choice(["I like {friend} very much.", "That is my story.", "It was a good day.",
                            "Then we went home.", "I will never forget the {place}."])  # fmt: skip
    return tell(random, [opening, *events, ending], scene)


KINDS: dict[Callable[[Random], str], float] = {
    write_story: 14, write_tall_tale: 2, write_counting: 2, write_counted_verse: 1,
    write_list: 2, write_shopping: 1, write_questions: 2, write_owners: 2, write_dialogue: 2,
    write_rhyme: 1.5, write_week: 1, write_nested: 1, write_letter: 1, write_recipe: 1,
    write_good_night: 1, write_countdown_song: 1, write_own_tale: 2,
}  # fmt: skip


def write_piece(random: Random) -> str:
    """Write one piece of a random kind."""
    (kind,) = random.choices(list(KINDS), weights=list(KINDS.values()))
    return correct_articles(kind(random))


def write_pieces(seed: int) -> Iterator[str]:
    """Write pieces without end; the same seed writes the same pieces."""
    random = Random(seed)
    while True:
        yield write_piece(random)
