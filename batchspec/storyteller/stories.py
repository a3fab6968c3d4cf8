"""Story frames: each is a row of beats, and each beat offers several ways to say it.

The names in braces are filled by ``grammar.cast_scene``. A beat that holds an empty string may
be left out of a telling.
"""

Beat = tuple[str, ...]

OPENING: Beat = (
    "Once upon a time there was {a_trait} {role} named {hero}.",
    "Once upon a time, {a_trait} {role} named {hero} lived in the {place}.",
    "Once upon a time, {hero} lived in a little house near the {place}.",
    "Once there was {a_trait} {role}. {his} name was {hero}.",
    "There was {a_trait} {role} called {hero}.",
    "There was once {a_trait} {role} named {hero} who {habit}.",
    "There once lived {a_trait} {role} in the {place}. {his} name was {hero}.",
    "One day, {hero} went to the {place}.",
    "One day, {a_trait} {role} named {hero} walked to the {place}.",
    "One morning, {hero} woke up and ran to the {place}.",
    "One {weather} day, {hero} and {friend} met in the {place}.",
    "My {relation} {hero} lived near the {place}.",
    "My {relation} is called {hero}. {he} is very {trait}.",
    "In the {place} there was {a_trait} {role} named {hero}.",
    "In the {place} lived {a_trait} {role}. {his} name was {hero}.",
    "In a small town, {a_trait} {role} named {hero} {habit}.",
    "The {trait} {role} was called {hero}.",
    "The {role} {habit}. {his} name was {hero}.",
    "The {role} lived in the {place}. {his} name was {hero}.",
    "Long ago, {a_trait} {role} named {hero} lived near the {place}.",
    "{hero} was {a_trait} {role}.",
    "{hero} the {role} {habit}.",
    "{a_trait} {role} named {hero} lived in the {place}.",
    "It was a {weather} day. {hero} was in the {place}.",
    "It was {day}, and {hero} was very {bad}.",
    "On {day}, {hero} walked to the {place}.",
    "Last {day}, {hero} went to the {place} with {friend}.",
    "{hero} and {friend} were good friends.",
    "Every day, {hero} walked from the {place} to the {place2}.",
    "Deep in the {place}, {a_trait} {role} named {hero} {habit}.",
    "When {hero} was young, {he} {habit}.",
    "Have you heard of {hero}? {hero} was {a_trait} {role}.",
    "This is the story of {hero}, {a_trait} {role}.",
    "Far away, near the {place}, lived {a_trait} {role} named {hero}.",
    "I know {a_trait} {role} named {hero}.",
    "Late at night, {hero} sat in the {place}.",
)

DETAIL: Beat = (
    "",
    "",
    "",
    "{hero} {habit}.",
    "{he} {habit}.",
    "It was a {weather} day.",
    "The sun was shining.",
    "{hero} was {trait} but never mean.",
    "Everyone in the {place} knew {him}.",
    "{he} had a friend named {friend}.",
    "{hero} had {number} {counts} for lunch.",
)

EVENT: Beat = (
    "",
    "",
    "On the way, {hero} met a {animal} and {action}.",
    "Then {he} {action}.",
    "{hero} {action}.",
    "Suddenly it began to rain.",
    "A {animal} came by and {action}.",
    "The wind was strong, but {hero} was {trait}.",
)

ENDING: Beat = (
    "{hero} was very {good}.",
    "From then on, {hero} and {friend} were best friends.",
    "They were both {good}.",
    "That night, {hero} slept well and dreamed of {friend}.",
    "And they lived happily ever after.",
    "Then {hero} and {friend} went home and ate some {food}.",
    "It was the best {day} of the year.",
    '"What a day," said {hero}, and {he} went home.',
    "The end.",
)

KEPT: Beat = (
    *ENDING,
    "And {hero} took good care of the {thing} from that day on.",
    "That night, {hero} slept well and dreamed of the {look} {thing}.",
    "{hero} never lost the {thing} again.",
)

INTERLUDE: Beat = (
    "The next day, {hero} and {friend} met again in the {place2}.",
    "{friend} asked {hero} for some {food}, and {hero} gave {friend} half of it.",
    '"Where is the {animal}?" asked {friend}.',
    "{hero} told {friend} about the {place}.",
    "In the {place2} they saw a {animal} that {action}.",
    "Later {friend} {action}, and {hero} {action2}.",
    "It was {weather}, so they stayed in the {place}.",
    '"I am {good} that you are here, {friend}," said {hero}.',
    '"Let us go to the {place2} on {day}," said {friend}. "Yes, on {day}," said {hero}.',
    "{hero} counted: one, two, three, four, five.",
    "After that, the {animal} {action}.",
)

HAS: Beat = (
    "{hero} had {a_thing}.",
    "{he} had {a_thing}, and {he} loved it very much.",
    "{his} best thing was {a_thing}.",
    "{hero} got {a_thing} from {friend}.",
    "{he} found {a_thing} {spot}.",
    "{he} always carried {a_thing}.",
)

LOST: tuple[Beat, ...] = (
    OPENING,
    DETAIL,
    HAS,
    EVENT,
    (
        "But one day the {thing} was gone.",
        "One evening {hero} lost the {thing}.",
        "But then {hero} could not find the {look} {thing}.",
        "Then the {thing} was missing.",
    ),
    ("{hero} was {bad}.", "{he} was very {bad}.", "{hero} felt {bad}.", ""),
    (
        "{he} looked {spot2}, but the {thing} was not there.",
        "First {hero} looked {spot2}. No {thing}!",
        "{hero} went to the {place2} and looked {spot2}. The {thing} was not there.",
    ),
    (
        '"Have you seen my {thing}?" {hero} asked {friend}.',
        '{hero} asked {friend}, "Where is my {look} {thing}?"',
        "So {he} asked {friend} for help.",
        "",
    ),
    (
        '"I saw it {spot3}," said {friend}. {hero} looked {spot3}, and there was the {thing}!',
        "{friend} looked {spot3} and found the {look} {thing}.",
        "In the end, {friend} found the {thing} {spot3}.",
        "A {animal} had put the {thing} {spot3}. {friend} saw it and gave it to {hero}.",
    ),
    (
        '"Thank you, {friend}!" said {hero}.',
        "{hero} thanked {friend}.",
        "",
        '"Here is your {thing}, {hero}," said {friend}.',
    ),
    KEPT,
)

GIFT: tuple[Beat, ...] = (
    OPENING,
    DETAIL,
    (
        "It was the birthday of {friend}.",
        "Soon it was {friend}'s birthday.",
        "{hero} wanted to give {friend} a present.",
        "{friend} was sick and {bad}.",
    ),
    (
        "{hero} made {a_thing} for {friend}.",
        "{he} bought {a_thing} in the {place2}.",
        "{he} put {a_thing} in a box.",
        '"I will give {friend} {a_thing}," said {hero}.',
    ),
    EVENT,
    (
        "{friend} opened the box and saw the {look} {thing}.",
        "{hero} gave the {thing} to {friend}.",
        '"This {thing} is for you, {friend}," said {hero}.',
    ),
    (
        '"Thank you, {hero}! I love the {thing}," said {friend}.',
        '"What a {look} {thing}!" said {friend}. "Thank you, {hero}."',
        "{friend} was so {good} that {fhe} {action}.",
    ),
    (
        "Then {friend} gave {a_second} to {hero}.",
        "In return, {hero} got {a_second}.",
        "{friend} put the {thing} {spot}.",
        "",
    ),
    (
        "Now {friend} had the {thing} and {hero} had a good friend.",
        "The {thing} now belonged to {friend}.",
        "{friend} kept the {thing} for many years.",
        "They shared some {food}.",
    ),
    ENDING,
)

SWAP: tuple[Beat, ...] = (
    OPENING,
    DETAIL,
    (
        "{hero} had {a_thing}. {friend} had {a_second}.",
        "{hero} owned {a_thing}, and {friend} owned {a_second}.",
        "In {his} bag {hero} had {a_thing}. In {fhis} bag {friend} had {a_second}.",
    ),
    EVENT,
    (
        '"I like your {second}," said {hero}. "I like your {thing}," said {friend}.',
        "{hero} liked the {second}, and {friend} liked the {thing}.",
        '"Shall we trade?" asked {hero}. "Yes, let us trade," said {friend}.',
    ),
    (
        "So {hero} gave the {thing} to {friend}, and {friend} gave the {second} to {hero}.",
        "{hero} took the {second} and {friend} took the {thing}.",
        "They traded the {thing} for the {second}.",
    ),
    (
        "Now {hero} had the {look2} {second} and {friend} had the {look} {thing}.",
        "Now the {second} belonged to {hero}, and the {thing} belonged to {friend}.",
    ),
    EVENT,
    (
        "{hero} put the {second} {spot}.",
        "{friend} put the {thing} {spot}.",
        "",
        "A {animal} saw it all and {action}.",
    ),
    ENDING,
)

TRIP: tuple[Beat, ...] = (
    OPENING,
    DETAIL,
    (
        "{hero} packed three things: {a_thing}, {a_second} and {a_third}.",
        "{he} took {a_thing}, {a_second} and {a_third} along.",
        "In the bag were {a_thing}, {a_second} and {a_third}.",
    ),
    (
        "{he} walked to the {place2}.",
        "{hero} and {friend} went to the {place2}.",
        "The way to the {place2} was long.",
    ),
    (
        "In the {place2}, {he} used the {thing}.",
        "First {hero} took out the {thing} and {action}.",
        "In the {place2}, {hero} gave the {thing} to a {animal}.",
    ),
    EVENT,
    (
        "Next {hero} took out the {second} and {action}.",
        "Then {he} used the {second}.",
        "Then {he} gave the {look2} {second} to {friend}.",
    ),
    (
        "Last of all, {he} took out the {third}.",
        "At last {hero} used the {third}.",
        "Only the {third} was left in the bag.",
    ),
    (
        "{hero} was {good}, because the {thing}, the {second} and the {third} were all useful.",
        '"A {thing}, a {second} and a {third} are all I need," said {hero}.',
        "",
    ),
    ENDING,
)

CHAIN: tuple[Beat, ...] = (
    OPENING,
    DETAIL,
    HAS,
    (
        "But a {animal} took the {thing} and ran away.",
        "Then the {thing} was gone.",
        "A gust of wind took the {thing}.",
    ),
    (
        '{hero} asked the {animal2}, "Have you seen my {thing}?"',
        '"Where is my {thing}?" {hero} asked the {animal2}.',
    ),
    (
        '"No," said the {animal2}. "Ask the {animal3}."',
        '"I have not seen your {thing}," said the {animal2}. "Go and ask the {animal3}."',
    ),
    (
        'So {hero} asked the {animal3}, "Have you seen my {thing}?"',
        'So {he} went to the {animal3}. "Have you seen my {look} {thing}?"',
    ),
    (
        '"Yes," said the {animal3}. "Your {thing} is {spot}."',
        '"Yes, {hero}," said the {animal3}. "Look {spot}."',
    ),
    (
        "{hero} looked {spot}, and there was the {look} {thing}.",
        "{he} ran and found the {thing} {spot}.",
    ),
    (
        '"Thank you, {animal2}! Thank you, {animal3}!" said {hero}.',
        "{hero} thanked the {animal2} and the {animal3}.",
        "",
    ),
    KEPT,
)

SHARE: tuple[Beat, ...] = (
    OPENING,
    DETAIL,
    (
        "{hero} had {number} {counts}.",
        "{he} found {number} {counts} {spot}.",
        "In the morning {hero} picked {number} {counts}.",
    ),
    EVENT,
    (
        "{friend} gave {him} {number2} more.",
        "Then {friend} gave {hero} {number2} more {counts}.",
        "Later {he} got {number2} more {counts} from {friend}.",
    ),
    (
        "Now {hero} had {total} {counts}.",
        "{number} and {number2} make {total}.",
        '"{number} plus {number2} is {total}," said {hero}.',
    ),
    (
        "{he} gave one to the {animal}, and {less} were left.",
        "{hero} ate one of the {counts}. Then there were {less}.",
        "",
    ),
    ENDING,
)

RACE: tuple[Beat, ...] = (
    (
        "The {animal}, the {animal2} and the {animal3} had a race.",
        "One day, the {animal}, the {animal2} and the {animal3} ran a race to the {place}.",
        "In the {place}, a {animal}, a {animal2} and a {animal3} wanted to race.",
        "Once upon a time, a {animal}, a {animal2} and a {animal3} had a race.",
    ),
    (
        '"I am the fastest," said the {animal}.',
        '"I will win," said the {animal}.',
        "The {animal} was sure to win.",
    ),
    (
        '"We will see," said the {animal2}.',
        "The {animal2} only smiled.",
        '"No, I am faster," said the {animal2}.',
    ),
    ('"One, two, three, go!" said {hero}.', '{hero} said, "Ready, steady, go!"'),
    (
        "The {animal} stopped and {action}.",
        "Half way, the {animal} fell asleep {spot}.",
        "But the {animal} ran the wrong way, to the {place2}.",
    ),
    (
        "The {animal3} ran and ran.",
        "The {animal2} fell into the mud.",
        "The {animal3} {action}.",
        "",
    ),
    (
        "The {animal3} came first, the {animal2} came second, and the {animal} came last.",
        "In the end, the {animal3} was first, the {animal2} was second and the {animal} was third.",
    ),
    ("{hero} gave {a_thing} to the {animal3}.", "The {animal3} won {a_thing}."),
    (
        '"Well done, {animal3}," said the {animal}.',
        "The {animal3} loved the {thing}.",
        "The {animal} was {bad}, but the {animal3} shared the {thing}.",
        "The end.",
    ),
)

HELP: tuple[Beat, ...] = (
    OPENING,
    DETAIL,
    (
        "In the {place2}, {hero} saw a {animal} {spot}.",
        "One day {hero} heard a {animal} cry.",
        "A {trait2} {animal} sat {spot} and was {bad}.",
    ),
    (
        '"Why are you {bad}, {animal}?" asked {hero}.',
        '"What is wrong, {animal}?" asked {hero}.',
        '"Can I help you?" asked {hero}.',
    ),
    (
        '"I have lost my {thing}," said the {animal}.',
        '"My {thing} is broken," said the {animal}.',
        '"I need a {thing}," said the {animal}. "I want to go to the {place}."',
    ),
    (
        '"Do not be {bad}," said {hero}. "I have {a_thing}."',
        "{hero} had {a_thing} at home, and {he} ran to get it.",
        "{friend} came and helped too, and soon they had {a_thing}.",
    ),
    (
        "{hero} gave the {thing} to the {animal}.",
        "The {animal} took the {thing} and {action}.",
        '"Here is a {thing} for you, {animal}," said {hero}.',
    ),
    (
        '"You are very {trait}, {hero}," said the {animal}.',
        '"Thank you, {hero}," said the {animal}.',
        "The {animal} was {good} and {action}.",
    ),
    (
        "",
        "The next day, the {animal} brought {a_second} for {hero}.",
        "The {animal} gave {hero} some {food}.",
    ),
    ENDING,
)

GROW: tuple[Beat, ...] = (
    OPENING,
    (
        "{hero} planted a {count} {spot}.",
        "{he} put a small seed {spot}.",
        '"I will plant a {count}," said {hero}.',
    ),
    (
        "On the first day, {hero} gave it water.",
        "{he} gave it water every day.",
        "On Monday it was tiny.",
    ),
    (
        "The next day, {hero} {action}, but nothing grew.",
        "It grew and grew.",
        "A {animal} came and watched.",
    ),
    (
        "After {number} days there was a green leaf.",
        "Soon it was as tall as {friend}.",
        "Soon it was as big as a {animal2}.",
    ),
    ('"Look, {friend}, how it grows!" said {hero}.', "{friend} came to see it and {action}.", ""),
    ("In the fall there were {number2} {counts}.", "At last {hero} picked {number2} {counts}."),
    (
        "{hero} gave one to {friend} and one to the {animal}.",
        "They took all {number2} {counts} to the {place2}.",
        "They ate the {counts} with {food}.",
    ),
    ("{hero} was very {good}.", "They were both {good}.", "It was a good year."),
)

FRAMES: tuple[tuple[Beat, ...], ...] = (
    LOST,
    GIFT,
    SWAP,
    TRIP,
    CHAIN,
    SHARE,
    RACE,
    HELP,
    GROW,
)
