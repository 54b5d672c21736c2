// SPDX-License-Identifier: Apache-2.0
// Hobby servos for pkm_control, on any Arduino with the library Servo. docs/hardware.md describes the lines.
// A line is a text, '*', and the exclusive or of the text's bytes as two hexadecimal digits.
#include <Servo.h>

const byte PINS[] = {2, 3, 4, 5, 6, 7};  // channel 0, 1, ...: where the servos' signal wires are
const byte BRAKE_PIN = 0;                // a brake or a relay of the servos' power, high: open; 0: there is none
const int SHORTEST = 500, LONGEST = 2500;  // us: pulses beyond are errors
const byte CHANNELS = sizeof(PINS);
const byte LONGEST_LINE = 96;

Servo servos[CHANNELS];
char line[LONGEST_LINE];
byte length = 0;
bool overlong = false;
bool driving = false;             // some servo has pulses
bool holds = false;               // what the watchdog does: hold, or let go
unsigned long watchdog = 500;     // ms
unsigned long heard = 0;          // ms

void say(const char *text) {
  byte sum = 0;
  for (const char *c = text; *c; ++c) sum ^= (byte)*c;
  char digits[4];
  snprintf(digits, sizeof digits, "*%02X", sum);
  Serial.print(text);
  Serial.print(digits);
  Serial.print('\n');
}

void brake(bool open) {
  if (BRAKE_PIN) digitalWrite(BRAKE_PIN, open ? HIGH : LOW);
}

void release() {
  for (byte i = 0; i < CHANNELS; ++i) servos[i].detach();
  driving = false;
}

bool whole() {  // whether the line's checksum is right; cuts it off
  char *star = strrchr(line, '*');
  if (overlong || !star || strlen(star) != 3) return false;
  byte sum = 0;
  for (char *c = line; c < star; ++c) sum ^= (byte)*c;
  *star = 0;
  return strtoul(star + 1, NULL, 16) == sum;
}

void pulses(char *rest) {
  char *number = strtok(rest, " ");
  if (!number) { say("E words"); return; }
  int wanted[CHANNELS];
  byte n = 0;
  for (char *word; n < CHANNELS && (word = strtok(NULL, " ")); ++n) {
    wanted[n] = atoi(word);
    if (wanted[n] != 0 && (wanted[n] < SHORTEST || wanted[n] > LONGEST)) { say("E pulse out of range"); return; }
  }
  for (byte i = 0; i < n; ++i) {
    if (wanted[i] == 0) { servos[i].detach(); continue; }
    if (!servos[i].attached()) servos[i].attach(PINS[i], SHORTEST, LONGEST);
    servos[i].writeMicroseconds(wanted[i]);
    driving = true;
  }
  heard = millis();
  char answer[12];
  snprintf(answer, sizeof answer, "A %s", number);
  say(answer);
}

void obey() {
  if (!whole()) { say("E checksum"); return; }
  char text[24];
  switch (line[0]) {
    case 'H': snprintf(text, sizeof text, "H pkm 1 %d", CHANNELS); say(text); break;
    case 'W': {
      char *end;
      watchdog = strtoul(line + 1, &end, 10);
      holds = strtoul(end, NULL, 10) == 1;
      say("A W");
      break;
    }
    case 'P': pulses(line + 1); break;
    case 'R': release(); say("A R"); break;
    case 'B': brake(line[2] == '1'); say("A B"); break;
    default: say("E word");
  }
}

void setup() {
  if (BRAKE_PIN) pinMode(BRAKE_PIN, OUTPUT);
  brake(false);
  Serial.begin(115200);
}

void loop() {
  while (Serial.available()) {
    char c = Serial.read();
    if (c == '\n') {
      line[length] = 0;
      if (length) obey();
      length = 0;
      overlong = false;
    } else if (c != '\r') {
      if (length < LONGEST_LINE - 1) line[length++] = c; else overlong = true;
    }
  }
  if (driving && millis() - heard > watchdog) {
    if (holds) heard = millis(); else { brake(false); release(); }
    say("E watchdog: the computer was silent");
  }
}
