# SPDX-License-Identifier: Apache-2.0
"""A robot in C as a library for Arduino: the same files where its tools look for them, and a sketch."""

from __future__ import annotations

import re

from pkm_dynamics.export_c.c_files import CFiles
from pkm_dynamics.export_c.header_in_c import release


def arduino_library(files: CFiles) -> dict[str, str]:
    """Text of each file of the library, by its path in the library's folder."""
    name, upper, texts = files.name, files.name.upper(), files.files
    number = re.match(r"\d+\.\d+\.\d+", release())
    words = {"NAME": name, "UPPER": upper, "VERSION": number[0] if number else "0.0.0"}
    words |= {"ROBOT": files.kinematics.mechanism.name, "REAL": files.scalar.real}
    found = {
        "library.properties": PROPERTIES,
        "README.md": texts["README.md"].replace(f"    {files.build_line}", TRIED),
        f"examples/{name}_at_home/{name}_at_home.ino": SKETCH,
    }
    found = {path: re.sub("|".join(words), lambda word: words[word[0]], text) for path, text in found.items()}
    found |= {f"src/{file}": texts[file] for file in (f"{name}.h", f"{name}.hpp", f"{name}.c")}
    return found | {f"extras/{name}_test.c": texts[f"{name}_test.c"]}


PROPERTIES = """\
name=pkm_NAME
version=VERSION
author=The pkm_control project
maintainer=The pkm_control project <maintainers@pkm-control.invalid>
sentence=Kinematics and dynamics of the robot ROBOT.
paragraph=Made from its description: inverse and forward kinematics, Jacobian, efforts, accelerations, margins.
category=Device Control
url=https://pkm-control.invalid
architectures=*
includes=NAME.h
"""
TRIED = "    gcc -std=c99 -O2 -Isrc src/NAME.c extras/NAME_test.c -o NAME_test -lm && ./NAME_test"
SKETCH = """\
/* Where the drives of ROBOT are at home, the efforts that hold it there, and how long both take. */
#include <NAME.h>

void setup()
{
    Serial.begin(115200);
}

void loop()
{
    REAL actuated[UPPER_N_ACTUATED], effort[UPPER_N_ACTUATED];
    const unsigned long begun = micros();
    int status = NAME_inverse(NAME_home, 0, actuated, 0);
    if (status == PKM_OK)
        status = NAME_gravity(NAME_home, 0, effort);
    const unsigned long spent = micros() - begun;
    Serial.print("status ");
    Serial.print(status);
    Serial.print(", microseconds ");
    Serial.println(spent);
    for (int k = 0; k < UPPER_N_ACTUATED && status == PKM_OK; k++) {
        Serial.print(actuated[k], 6);
        Serial.print(" held by ");
        Serial.println(effort[k], 6);
    }
    delay(1000);
}
"""
