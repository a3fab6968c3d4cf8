"""The words of the storyteller's small world, grouped by the part they play."""


def word_list(text: str) -> list[str]:
    """Read the words of a text."""
    return text.split()


def phrase_list(text: str) -> list[str]:
    """Read phrases that stand apart by bars or line ends."""
    return text.strip().replace("\n", "|").split("|")


GIRLS = word_list("""
Mia Anna Lily Ella Rosa Nora Ida Clara Emma Sara Julia Lena Maya Zoe Ruby Alice Hanna Olga
Tina Vera Wendy Nina Paula Greta Amy Betty Carol Daisy Eva Fiona Grace Holly Ivy Jane Kate
Lucy Molly Penny Stella Tara
""")

BOYS = word_list("""
Tom Ben Max Leo Sam Paul Jack Finn Oscar Hugo Peter David Noah Adam Felix Simon Victor Walter
Tim Nick Robin Ralph Otto Martin Karl Ivan Henry George Frank Eric Dan Carl Bruno Arthur Abel
Theo Oliver Luke Jonas Bill
""")

ANIMALS = word_list("""
fox bear rabbit mouse owl cat dog hen duck goat cow pig horse frog turtle wolf lion tiger
monkey elephant squirrel hedgehog badger deer donkey sheep goose crow robot dragon giant
parrot penguin whale crab snail otter beaver mole puppy kitten pony lamb bird spider
""")

PEOPLE = word_list("""
king queen farmer baker teacher sailor doctor painter singer miller shepherd gardener tailor
fisherman pilot driver cook wizard witch princess prince knight soldier clown
""")

THINGS = word_list("""
ball kite drum book hat cup spoon map lamp key coin ring bell box basket bag boat car train
doll clock brush pencil letter shell stone feather button ribbon scarf coat boot glove blanket
pillow ladder rope bucket shovel hammer whistle flute violin guitar balloon umbrella mirror
candle bottle plate bowl pot pan fork knife broom wagon bike puzzle crown sword wand lantern
compass telescope camera notebook necklace bracelet mask puppet marble statue vase flag tent
backpack wallet ticket card picture toy hook net magnet needle thimble barrel chest jar
""")

EDIBLE = word_list("""
apple pear plum egg nut cookie cake carrot lemon orange banana melon onion pancake muffin
biscuit mushroom grape bean bun
""")

COUNTABLE = [
    *EDIBLE,
    *word_list("button shell stone star flower feather coin"),
    *word_list("marble balloon pebble seed acorn sticker"),
]

HERDS = word_list("ducks frogs cats dogs hens cows pigs owls bears rabbits lambs birds turtles")

FOODS = word_list("""
bread soup cheese honey rice jam milk butter porridge salad pie stew corn cabbage pudding
chocolate pasta toast fish tea
""")

PLACES = word_list("""
garden forest park village market kitchen barn school library castle field meadow cave town
yard museum bakery shop tower valley desert jungle zoo attic cellar hut mill harbor orchard
stable theater workshop cabin cottage palace station hall swamp greenhouse playground city
""")

SPOTS = phrase_list("""
under the bed|behind the door|on the roof|in the tall grass|next to the well|under a bench
behind a big rock|on the top shelf|in an old drawer|near the river|under the stairs
behind the curtain|on the window sill|in a hollow tree|beside the road|under the table
behind the barn|on the bridge|in the mud|near the fence|under a pile of leaves
behind the sofa|on a high branch|in the snow|beside the pond|under the rug|behind the stove
on the hill|in the hay|near the gate|at the bottom of the lake|inside a dark hole
between two trees|on the kitchen chair
""")

COLORS = word_list("""
red blue green yellow white black brown pink purple gray golden silver
""")

LOOKS = word_list("""
small big old new shiny tiny wooden soft heavy round broken pretty strange little dusty
striped warm simple magic glass paper iron
""")

TRAITS = word_list("""
kind brave clever lazy happy quiet funny shy young old proud gentle curious careful hungry
lonely strong small tall polite busy sleepy cheerful honest silly wise noisy patient little big tiny
""")

GOOD_FEELINGS = word_list("""
happy glad proud thankful cheerful pleased excited calm delighted
""")

BAD_FEELINGS = word_list("""
sad worried angry tired afraid upset lonely nervous cold
""")

WEATHERS = word_list("""
sunny rainy windy cold warm foggy snowy cloudy bright stormy
""")

DAYS = word_list("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")

NUMBERS = word_list("""
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty
""")

HABITS = phrase_list("""
liked to sing|liked to read|liked to dance|liked to climb trees|loved to paint
loved to swim|loved to bake bread|loved to tell jokes|wanted to see the sea
wanted to learn to fly|wanted to find a friend|never told a lie|always woke up early
always helped the neighbors|could whistle any song|could run very fast
was afraid of the dark|slept late every day|worked hard all day|dreamed of the stars
""")

ACTIONS = phrase_list("""
danced in a circle|sang a short song|jumped up and down|clapped loudly|ran down the hill
climbed over the wall|took a deep breath|sat down on a log|looked at the sky
waved at the clouds|drank some water|closed both eyes|counted to ten|hummed an old tune
rolled in the grass|laughed out loud|told a funny story|picked a flower
drew a circle in the sand|knocked three times|waited for a long time|fell into a puddle
hid for a while|made a small fire|ate a bit of bread|whispered a secret
""")

SOUNDS = {
    "cat": "meow",
    "dog": "woof",
    "cow": "moo",
    "duck": "quack",
    "sheep": "baa",
    "pig": "oink",
    "hen": "cluck",
    "crow": "caw",
    "frog": "ribbit",
    "mouse": "squeak",
    "owl": "hoo",
    "horse": "neigh",
    "lion": "roar",
    "goose": "honk",
    "bird": "tweet",
    "wolf": "howl",
}

HOMES = {
    "bird": "in a nest",
    "bear": "in a cave",
    "bee": "in a hive",
    "fish": "in the water",
    "rabbit": "in a burrow",
    "horse": "in a stable",
    "cow": "in a barn",
    "spider": "in a web",
    "king": "in a castle",
    "frog": "near a pond",
    "fox": "in a den",
    "lion": "on the plain",
    "whale": "in the sea",
    "penguin": "on the ice",
    "monkey": "in the jungle",
}

COLORED = {
    "sky": "blue",
    "grass": "green",
    "snow": "white",
    "sun": "yellow",
    "coal": "black",
    "milk": "white",
    "lemon": "yellow",
    "frog": "green",
    "tomato": "red",
    "night": "black",
    "carrot": "orange",
    "cherry": "red",
    "leaf": "green",
    "pig": "pink",
    "bear": "brown",
}

OPPOSITES = {
    "hot": "cold",
    "big": "small",
    "day": "night",
    "up": "down",
    "fast": "slow",
    "wet": "dry",
    "happy": "sad",
    "old": "young",
    "open": "closed",
    "full": "empty",
    "hard": "soft",
    "left": "right",
    "black": "white",
    "loud": "quiet",
    "early": "late",
    "high": "low",
    "rich": "poor",
    "long": "short",
    "near": "far",
    "light": "dark",
    "clean": "dirty",
}

TOOLS = {
    "rain": "an umbrella",
    "cutting bread": "a knife",
    "eating soup": "a spoon",
    "opening a door": "a key",
    "reading": "a book",
    "seeing at night": "a lamp",
    "telling the time": "a clock",
    "sweeping the floor": "a broom",
    "drawing": "a pencil",
    "digging a hole": "a shovel",
    "catching fish": "a net",
    "finding the way": "a map",
}

RHYMES = [
    word_list("cat hat mat bat rat"),
    word_list("moon spoon balloon tune raccoon"),
    word_list("star jar car guitar bar"),
    word_list("tree bee sea key flea"),
    word_list("light night kite knight sight"),
    word_list("dog log frog hog fog"),
    word_list("fox box ox clock rock"),
    word_list("hen pen den wren glen"),
    word_list("bear chair pear stair hare"),
    word_list("goat boat coat note moat"),
    word_list("king ring wing swing string"),
    word_list("snail pail tail sail whale"),
    word_list("cake lake snake rake drake"),
    word_list("mouse house blouse grouse spouse"),
    word_list("bell shell well smell spell"),
    word_list("train cane plane lane crane"),
]
