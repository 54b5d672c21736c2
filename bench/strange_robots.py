# SPDX-License-Identifier: Apache-2.0
"""Descriptions that are legal but strange, written as short texts.

Most are planar five-bars (two driven arms of 0.3 m, forearms of 0.4 m, motors 0.25 m apart) with something odd done to
them; `limb` writes one arm, forearm and pin.
"""

from __future__ import annotations

from pkm_description.load import expand

BAR = '<inertial><origin xyz="{half} 0 0"/><mass value="{mass}"/><inertia ixx="1e-5" iyy="{i}" izz="{i}"/></inertial>'
FREE = 'type="continuous"'


def body(name: str, length: float, mass: float = 0.5) -> str:
    """A bar along x."""
    inertia = max(1e-5, mass * length**2 / 12)
    return f'<link name="{name}">{BAR.format(half=length / 2, mass=mass, i=inertia)}</link>'


def joint(name: str, parent: str, child: str, xyz: str = "0 0 0", axis: str = "0 0 1", kind: str = FREE) -> str:
    return (
        f'<joint name="{name}" {kind}><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="{axis}"/></joint>'
    )


def loop(name: str, first: str, at: str, second: str, to: str = "0 0 0", kind: str = "revolute") -> str:
    """A closure about z."""
    axis = "" if kind in ("spherical", "fixed") else '<axis xyz="0 0 1"/>'
    return (
        f'<loop name="{name}" type="{kind}"><predecessor link="{first}"><origin xyz="{at}"/></predecessor>'
        f'<successor link="{second}"><origin xyz="{to}"/></successor>{axis}</loop>'
    )


def limb(name: str, x: float, arm: float = 0.3, forearm: float = 0.4, y: float = 0.0) -> str:
    return (
        body(f"{name}_arm", arm, 0.8)
        + body(f"{name}_bar", forearm)
        + joint(f"{name}_motor", "base", f"{name}_arm", f"{x} {y} 0")
        + joint(f"{name}_elbow", f"{name}_arm", f"{name}_bar", f"{arm} 0 0")
        + loop(f"{name}_pin", f"{name}_bar", f"{forearm} 0 0", "tip")
    )


TIP = '<link name="tip"><inertial><mass value="0.3"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/></inertial></link>'
BRANCH = (
    '<link name="slide"/>'
    + joint("x", "base", "slide", axis="1 0 0", kind='type="prismatic"')
    + joint("y", "slide", "tip", axis="0 1 0", kind='type="prismatic"')
)
START = {"left_motor": 2.3, "left_elbow": -1.6, "right_motor": 0.83, "right_elbow": 1.6}


def robot(
    parts: str,
    drives: tuple[str, ...] = ("left_motor", "right_motor"),
    home: str = '<home xyz="0 0.45 0">{}</home>',
    start: dict[str, float] | None = None,
    pkm: str = "",
    platform: str = "tip",
) -> str:
    given = START if start is None else start
    starts = "".join(f'<joint name="{k}" position="{v}"/>' for k, v in given.items() if f'name="{k}"' in parts)
    driven = "".join(f'<joint name="{name}"><command_interface name="effort"/></joint>' for name in drives)
    return (
        f'<robot name="strange"><link name="base"/>{parts}'
        f'<pkm base_link="base" platform_link="{platform}" gravity="0 -9.81 0" {pkm}>{home.format(starts)}</pkm>'
        f'<ros2_control name="s" type="system">{driven}</ros2_control></robot>'
    )


LEFT, RIGHT = limb("left", -0.125), limb("right", 0.125)
PLAIN = TIP + BRANCH + LEFT + RIGHT
ON_LEFT_FOREARM = TIP + LEFT.partition("<loop")[0] + joint("left_pin", "left_bar", "tip", "0.4 0 0") + RIGHT
GUIDE = limb("guide", 0.0, y=0.9)


def _hung() -> str:
    """The tip turns on the left forearm, and nothing holds its angle."""
    return robot(ON_LEFT_FOREARM, home="<home>{}</home>")


def _welded_tip() -> str:
    """The tip is one body with the left forearm that carries it; only the right limb is a loop."""
    fixed = joint("weld", "left_bar", "tip", "0.4 0 0", kind='type="fixed"')
    return robot(TIP + LEFT.partition("<loop")[0] + fixed + RIGHT, home="<home>{}</home>")


def _tool_frame() -> str:
    """The platform is named by a massless tool frame that is fixed to the body on which the limbs end."""
    tool = '<link name="tool"/>' + joint("tool_mount", "tip", "tool", "0.02 0.05 0.01", kind='type="fixed"')
    return robot(PLAIN + tool, platform="tool", home='<home xyz="0.02 0.5 0.01">{}</home>')


def _doubled_elbow() -> str:
    """Two coaxial elbows with a body between them that may spin."""
    parts = PLAIN.replace(joint("left_elbow", "left_arm", "left_bar", "0.3 0 0"), "")
    washer = '<link name="washer"><inertial><mass value="0.01"/><inertia ixx="1e-6" iyy="1e-6" izz="1e-6"/>'
    washer += "</inertial></link>"
    return robot(
        parts
        + washer
        + joint("left_elbow", "left_arm", "washer", "0.3 0 0")
        + joint("left_elbow_again", "washer", "left_bar")
    )


def _planar_joint() -> str:
    """A planar platform of three degrees of freedom on one planar joint."""
    seats = {"left": "-0.05 0 0", "right": "0.05 0 0", "guide": "0 0.05 0"}
    limbs = LEFT + RIGHT + GUIDE
    for name, seat in seats.items():
        pin = loop(f"{name}_pin", f"{name}_bar", "0.4 0 0", "tip")
        limbs = limbs.replace(pin, loop(f"{name}_pin", f"{name}_bar", "0.4 0 0", "tip", seat))
    plane = joint("plane", "base", "tip", kind='type="planar"')
    return robot(TIP + plane + limbs, ("left_motor", "right_motor", "guide_motor"))


def _swapped_loops() -> str:
    """Predecessor and successor exchanged."""
    pin = loop("left_pin", "left_bar", "0.4 0 0", "tip")
    return robot(PLAIN.replace(pin, loop("left_pin", "tip", "0 0 0", "left_bar", "0.4 0 0")))


def _below_world() -> str:
    """The base is fixed to a root of another name."""
    root = '<link name="world"/>' + joint("mount", "world", "base", "0 0 1", kind='type="fixed"')
    return robot(PLAIN + root)


def _fixed_everywhere() -> str:
    """An arm in two parts, with a flange between, fixed to each other."""
    parts = PLAIN.replace(joint("left_elbow", "left_arm", "left_bar", "0.3 0 0"), "")
    flange = '<link name="flange"/>' + joint("glue", "left_arm", "flange", "0.1 0 0", kind='type="fixed"')
    rest = body("left_arm_end", 0.2) + joint("screw", "flange", "left_arm_end", kind='type="fixed"')
    return robot(parts + flange + rest + joint("left_elbow", "left_arm_end", "left_bar", "0.2 0 0"))


def _scaled(factor: float) -> str:
    def scaled_limb(name: str, x: float) -> str:
        return limb(name, x * factor, 0.3 * factor, 0.4 * factor)

    return robot(
        TIP + BRANCH + scaled_limb("left", -0.125) + scaled_limb("right", 0.125),
        home=f'<home xyz="0 {0.45 * factor!r} 0">{{}}</home>',
    )


def _three_revolutes() -> str:
    """A Gough-Stewart platform whose spherical joints are three revolute joints each, closed by a fixed loop."""
    text, _ = expand("gough_stewart")
    for part in text.split("<loop")[1:]:
        piece = "<loop" + part.partition("</loop>")[0] + "</loop>"
        name = piece.partition('name="')[2].partition('"')[0]
        carrier, seat = (s.partition('"')[0] for s in piece.split('link="')[1:])
        at, to = (s.partition('xyz="')[2].partition('"')[0] for s in piece.split("<origin")[1:])
        chain = f'<link name="{name}_1"/><link name="{name}_2"/><link name="{name}_3"/>'
        chain += joint(f"{name}_x", carrier, f"{name}_1", at, "1 0 0")
        chain += joint(f"{name}_y", f"{name}_1", f"{name}_2", axis="0 1 0")
        chain += joint(f"{name}_z", f"{name}_2", f"{name}_3", axis="0 0 1")
        text = text.replace(piece, chain + loop(name, f"{name}_3", "0 0 0", seat, to, "fixed"))
    return text


def _floating_platform() -> str:
    """The platform of a Gough-Stewart on one floating joint."""
    text, _ = expand("gough_stewart")
    for name in ("x", "y", "z", "yaw", "pitch", "roll"):
        begin = text.index(f'<joint name="platform_{name}"')
        text = text[:begin] + text[text.index("</joint>", begin) + len("</joint>") :]
    for line in text.split("<link ")[1:]:
        name = line.partition('name="')[2].partition('"')[0]
        if name.startswith("platform_"):
            text = text.replace(f'<link name="{name}"/>', "")
    return text.replace("<pkm ", joint("platform", "base_link", "platform", kind='type="floating"') + "<pkm ", 1)


STRETCHED = f'<home xyz="0 {(0.49 - 0.125**2) ** 0.5!r} 0">{{}}</home>'
IN_LINE = f'<home xyz="0 {(0.09 - 0.275**2) ** 0.5!r} 0">{{}}</home>'
ELBOWS_LOW = {"left_motor": 2.73, "left_elbow": -2.73, "right_motor": 0.41, "right_elbow": 2.73}
ACROSS = loop("guide_pin", "guide_bar", "0.4 0 0", "tip").replace('xyz="0 0 1"', 'xyz="0 1 0"')
GEARED = PLAIN.replace(
    'name="right_motor" type="continuous">',
    'name="right_motor" type="continuous"><mimic joint="left_motor" multiplier="-1" offset="3.141592653589793"/>',
)

SOLVED: dict[str, str] = {
    "plain": robot(PLAIN),
    "coaxial motors": robot(TIP + BRANCH + limb("left", 0.0) + limb("right", 0.0)),
    "two coaxial elbows": _doubled_elbow(),
    "a limb without actuator": robot(PLAIN + GUIDE),
    "two actuators in one limb": robot(PLAIN, ("left_motor", "left_elbow")),
    "a redundant limb": robot(PLAIN + GUIDE, ("left_motor", "right_motor", "guide_motor")),
    "all joints actuated": robot(PLAIN, ("left_motor", "left_elbow", "right_motor", "right_elbow")),
    "platform hangs on a limb": _welded_tip(),
    "platform is a tool frame": _tool_frame(),
    "loop turned round": _swapped_loops(),
    "spherical pins in a plane": robot(PLAIN.replace('type="revolute"', 'type="spherical"')),
    "base below a world": _below_world(),
    "fixed joints inside": _fixed_everywhere(),
    "a millimetre tall": _scaled(2e-3),
    "half a kilometre tall": _scaled(1e3),
    "spherical joints of three revolutes": _three_revolutes(),
    "home with stretched limbs": robot(PLAIN, home=STRETCHED, start={"left_motor": 1.39, "right_motor": 1.75}),
    "home with forearms in line": robot(PLAIN, home=IN_LINE, start=ELBOWS_LOW),
    "task coordinates actuated": robot(PLAIN, ("x", "y")),
    "a loop from base to platform": robot(PLAIN + loop("plane", "base", "0 0.45 0", "tip", kind="planar")),
    "platform is a forearm": robot(PLAIN, platform="left_bar", home="<home>{}</home>"),
    "no gravity": robot(PLAIN).replace("0 -9.81 0", "0 0 0"),
}


# text, and words that its error must hold; where two pins share a gap, either may be named
REFUSED: dict[str, tuple[str, str]] = {
    "one actuator for two degrees of freedom": (robot(PLAIN, ("left_motor",)), "wrong number of actuators.*2T"),
    "a tip that turns on its pin": (_hung(), "wrong number of actuators.*2T1R"),
    "a loop that cannot close": (
        robot(TIP + BRANCH + limb("left", -0.125, forearm=0.1) + RIGHT),
        r'left_pin"> base and tip span at least 0\.467 m .* at most 0\.4 m',
    ),
    "an arm of no length": (
        robot(TIP + BRANCH + limb("left", -0.125, arm=0.0, forearm=0.5) + RIGHT),
        r'left_pin"> left_bar spans at least 0\.5 m .* at most 0\.467 m',
    ),
    "a guide across the plane": (
        robot(PLAIN + GUIDE.replace(loop("guide_pin", "guide_bar", "0.4 0 0", "tip"), ACROSS)),
        'guide_pin"> stays open',
    ),
    "a pendulum": (robot(PLAIN + body("bob", 0.1) + joint("swing", "base", "bob")), "swing.*no loop closure"),
    "actuators that the platform does not feel": (
        _doubled_elbow()
        .replace('"left_motor"><command', '"left_elbow_again"><command')
        .replace('"right_motor"><command', '"left_elbow"><command'),
        "leave the platform 1 of its 2 degrees of freedom",
    ),
    "no mass anywhere": (
        robot(PLAIN.replace("<inertial>", "<ignored>").replace("</inertial>", "</ignored>")),
        "without any mass",
    ),
    "a loop of a link with itself": (robot(PLAIN + loop("odd", "tip", "0 0 0", "tip")), "odd.*itself"),
    "a gear between the motors": (
        robot(GEARED, ("left_motor",)),
        "right_motor.*mimic.*2 degrees of freedom instead of 1",
    ),
    "planar joint": (_planar_joint(), "planar joint cannot carry the platform"),
    "floating platform": (_floating_platform(), "floating joint cannot carry the platform"),
}
