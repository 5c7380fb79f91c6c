"""The materials of the game: what one line holds is all in which a material differs."""

from __future__ import annotations

from typing import Final

from agentgyms.envs.scienceworld.own.properties.material import (
    MaterialProperties,
    common,
    dissolved,
    material,
    paint,
    unknown_friction,
)

Material = type[MaterialProperties]

AirProp: Final[Material] = material(
    "air",
    ("solid air", "liquid air", "air"),
    "clear",
    0.01,
    (-215, -194, 100000),
    0.0,
    state_of_matter="gas",
)
SodiumProp: Final[Material] = material(
    "sodium", common("sodium"), "grey", 0.2, (98, 881, 100000), 0.0, electric=True
)
MetalProp: Final[Material] = material(
    "metal", common("metal"), "grey", 1.0, (1000, 2000, 100000), 0.5, electric=True
)
AluminumProp: Final[Material] = material(
    "aluminum", common("aluminum"), "grey", 1.0, (660, 2470, 100000), 0.45, electric=True
)
BrassProp: Final[Material] = material(
    "brass", common("brass"), "brown", 1.0, (900, 1100, 100000), 0.5, electric=True
)
BronzeProp: Final[Material] = material(
    "bronze", common("bronze"), "brown", 1.0, (910, 2300, 100000), 0.4, electric=True
)
CaesiumProp: Final[Material] = material(
    "caesium",
    ("solid caesium", "liquid caesium", "gaseous caesium"),
    "gold",
    1.0,
    (29, 671, 100000),
    0.5,
    electric=True,
)
CopperProp: Final[Material] = material(
    "copper", common("copper"), "brown", 1.0, (1083, 2500, 100000), 0.6, electric=True
)
GalliumProp: Final[Material] = material(
    "gallium",
    common("gallium"),
    "silver",
    1.0,
    (30, 2400, 100000),
    0.0,
    electric=True,
    state_of_matter="liquid",
)
GoldProp: Final[Material] = material(
    "gold", common("gold"), "brown", 1.0, (1063, 2700, 100000), 0.0, electric=True
)
IronProp: Final[Material] = material(
    "iron", common("iron"), "grey", 1.0, (1538, 2862, 100000), 0.7, electric=True
)
LeadProp: Final[Material] = material(
    "lead", common("lead"), "grey", 1.0, (327, 1740, 100000), 0.43, electric=True
)
MercuryProp: Final[Material] = material(
    "mercury",
    ("solid mercury", "liquid mercury", "gaseous mercury"),
    "silver",
    1.0,
    (-39, 357, 100000),
    0.1,
    electric=True,
    state_of_matter="liquid",
)
PlatinumProp: Final[Material] = material(
    "platinum", common("platinum"), "grey", 1.0, (1770, 4400, 100000), 0.8, electric=True
)
SiliconProp: Final[Material] = material(
    "silicon", common("silicon"), "grey", 1.0, (1420, 2600, 100000), 0.0, electric=True
)
SteelProp: Final[Material] = material(
    "steel", common("steel"), "grey", 1.0, (1400, 2900, 100000), 0.6, electric=True
)
TinProp: Final[Material] = material(
    "tin", common("tin"), "grey", 1.0, (232, 2602, 100000), 0.3, electric=True
)
TitaniumProp: Final[Material] = material(
    "titanium", common("titanium"), "grey", 1.0, (1670, 3200, 100000), 0.0, electric=True
)
ZincProp: Final[Material] = material(
    "zinc", common("zinc"), "brown", 1.0, (419, 906, 100000), 0.62, electric=True
)
GlassProp: Final[Material] = material(
    "glass", common("glass"), "clear", 1.0, (1400, 2200, 100000), 0.2
)
RustProp: Final[Material] = material("rust", None, "red", 0.9, (100000, 100001, 100000), 0.7)
PlasticProp: Final[Material] = material(
    "plastic", common("plastic"), "white", 1.0, (200, 300, 100000), 0.1
)
CeramicProp: Final[Material] = material(
    "ceramic", common("ceramic"), "white", 0.02, (2000, 10001, 10000), 0.65
)
WoodProp: Final[Material] = material("wood", None, "brown", 0.5, (10000, 10001, 350), 0.2)
PaperProp: Final[Material] = material("paper", None, "white", 0.5, (10000, 10001, 210), 0.2)
SandpaperProp: Final[Material] = material(
    "sandpaper", None, "brown", 0.5, (10000, 10001, 230), 0.98
)
CottonClothProp: Final[Material] = material("cloth", None, "white", 0.1, (10000, 10001, 300), 0.3)
RubberProp: Final[Material] = material(
    "rubber", common("rubber"), "black", 0.5, (180, 10001, 260), 0.95
)
WaterProp: Final[Material] = material(
    "water",
    ("ice", "water", "steam"),
    "clear",
    0.5,
    (0, 100, 100000),
    0.1,
    state_of_matter="liquid",
)
OrangeJuiceProp: Final[Material] = material(
    "orange juice",
    dissolved("orange juice"),
    "orange",
    0.5,
    (0, 100, 100000),
    0.1,
    state_of_matter="liquid",
)
AppleJuiceProp: Final[Material] = material(
    "apple juice",
    dissolved("apple juice"),
    "yellow",
    0.5,
    (-2, 160, 100000),
    0.1,
    state_of_matter="liquid",
)
SoilProp: Final[Material] = material("soil", None, "brown", 0.5, (10000, 10001, 10000), 0.3)
PlantMatterProp: Final[Material] = material(
    "plant matter", None, "green", 0.5, (10000, 10001, 200), 0.3
)
FlowerMatterProp: Final[Material] = material(
    "flower matter", None, "purple", 0.5, (10000, 10001, 200), 0.3
)
PollenMatterProp: Final[Material] = material(
    "pollen matter", None, "yellow", 0.5, (10000, 10001, 200), 0.5
)
ChocolateProp: Final[Material] = material(
    "chocolate",
    ("solid chocolate", "liquid chocolate", "gaseous chocolate"),
    "brown",
    0.5,
    (30, 100000, 95),
    0.32,
)
SugarProp: Final[Material] = material("sugar", None, "white", 0.5, (186, 100000, 350), 0.7)
MarshmallowProp: Final[Material] = material(
    "marshmallow", common("marshmallow"), "white", 0.5, (36, 100000, 350), 0.7
)
SoapProp: Final[Material] = material("soap", common("soap"), "white", 0.5, (140, 100000, 537), 0.05)
IceCreamProp: Final[Material] = material(
    "ice cream", common("ice cream"), "white", 0.5, (-10, 101, 100000), 0.1, temperature_c=-15.0
)
FlourProp: Final[Material] = material("flour", None, "white", 0.5, (10000, 10001, 380), 0.5)
JamProp: Final[Material] = material("jam", None, "red", 0.5, (10000, 10001, 400), 0.5)
DoughProp: Final[Material] = material("dough", None, "white", 0.5, (10000, 10001, 380), 0.5)
NutProp: Final[Material] = material("nut", None, "brown", 0.5, (10000, 10001, 400), 0.5)
AshProp: Final[Material] = material("ash", None, "grey", 0.5, (10000, 10001, 10002), 0.9)
AshProp.has_combusted = True
AshProp.combustion_ticks = 0
SodiumChlorideProp: Final[Material] = material(
    "sodium chloride", common("sodium chloride"), "white", 0.2, (801, 1465, 100000), 0.73
)
AceticAcidProp: Final[Material] = material(
    "acetic acid", dissolved("acetic acid"), "clear", 0.2, (17, 119, 100000), 0.1
)
SodiumBicarbonateProp: Final[Material] = material(
    "sodium bicarbonate", None, "white", 0.2, (10000, 10001, 100), 0.73
)
SodiumAcetateProp: Final[Material] = material(
    "sodium acetate",
    ("sodium bicarbonate", "sodium bicarbonate", "sodium bicarbonate"),
    "clear",
    0.5,
    (324, 881, 100000),
    0.5,
)
SaltWaterProp: Final[Material] = material(
    "salt water", dissolved("salt water"), "white", 0.2, (-2, 110, 100000), 0.15, electric=True
)
SoapyWaterProp: Final[Material] = material(
    "soapy water", dissolved("soapy water"), "white", 0.2, (-1, 105, 100000), 0.06
)
SugarWaterProp: Final[Material] = material(
    "sugar water", dissolved("sugar water"), "white", 0.2, (-3, 112, 100000), 0.06
)
BrickProp: Final[Material] = material("brick", None, "red", 0.1, (1500, 100001, 100000), 0.9)
GenericPaintProp: Final[Material] = paint("white")
WhitePaintProp: Final[Material] = paint("white")
BlackPaintProp: Final[Material] = paint("black")
RedPaintProp: Final[Material] = paint("red")
BluePaintProp: Final[Material] = paint("blue")
YellowPaintProp: Final[Material] = paint("yellow")
VioletPaintProp: Final[Material] = paint("violet")
GreenPaintProp: Final[Material] = paint("green")
OrangePaintProp: Final[Material] = paint("orange")
BrownPaintProp: Final[Material] = paint("brown")
YellowOrangePaintProp: Final[Material] = paint("yellow-orange")
RedOrangePaintProp: Final[Material] = paint("red-orange")
VioletRedPaintProp: Final[Material] = paint("violet-red")
BlueVioletPaintProp: Final[Material] = paint("blue-violet")
GreenBluePaintProp: Final[Material] = paint("green-blue")
YellowGreenPaintProp: Final[Material] = paint("yellow-green")
UnknownFrictionMaterial: Final[Material] = unknown_friction("", 0.0)
UnknownFrictionMaterialA: Final[Material] = unknown_friction("A", 0.1)
UnknownFrictionMaterialB: Final[Material] = unknown_friction("B", 0.7)
UnknownFrictionMaterialC: Final[Material] = unknown_friction("C", 0.4)
UnknownFrictionMaterialD: Final[Material] = unknown_friction("D", 0.6)
UnknownFrictionMaterialE: Final[Material] = unknown_friction("E", 0.2)
UnknownFrictionMaterialF: Final[Material] = unknown_friction("F", 0.8)
UnknownFrictionMaterialG: Final[Material] = unknown_friction("G", 0.3)
UnknownFrictionMaterialH: Final[Material] = unknown_friction("H", 0.9)
UnknownFrictionMaterialJ: Final[Material] = unknown_friction("J", 0.9)
DefaultFrictionMaterialProp: Final[Material] = unknown_friction("J", 0.5)

# Each class has the name that it is known by here, so that a game can be pickled.
for _name, _value in list(globals().items()):
    if isinstance(_value, type) and issubclass(_value, MaterialProperties):
        _value.__name__ = _value.__qualname__ = _name
        _value.__module__ = (
            MaterialProperties.__module__ if _name == "MaterialProperties" else __name__
        )
