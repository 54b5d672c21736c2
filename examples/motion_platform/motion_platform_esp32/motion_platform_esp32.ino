// SPDX-License-Identifier: Apache-2.0
// The hexapod of hobby servos as a motion platform on an ESP32 (Arduino core 3). Beside this file go motion_platform.h,
// motion_platform.c, settings.h, and hobby_hexapod.h and .c of `pkm export ... --to c --scalar float`.
//
// The computer sends a line for each of its frames: accelerations x y z in m/s^2 and rates of roll, pitch, yaw in rad/s.
#include <Arduino.h>
extern "C" {
#include "settings.h"
}

static const int pins[DRIVES] = {13, 14, 25, 26, 27, 32};
static const int middle[DRIVES] = {1500, 1500, 1500, 1500, 1500, 1500};  // us: with level horns
static const int sign[DRIVES] = {1, -1, 1, -1, 1, -1};                   // of how each servo is mounted
static const unsigned long silence = 200;                                // ms without a line: the vehicle stands still

static struct platform platform;
static struct vehicle vehicle;
static unsigned long heard, due;

static void listen() {
  static char line[96];
  static size_t length;
  while (Serial.available() > 0) {
    const char c = (char)Serial.read();
    if (c != '\n') {
      if (length < sizeof line - 1) line[length++] = c;
      continue;
    }
    line[length] = 0;
    length = 0;
    struct vehicle now;
    float *a = now.acceleration, *r = now.rate;
    if (sscanf(line, "%f %f %f %f %f %f", &a[0], &a[1], &a[2], &r[0], &r[1], &r[2]) == 6) {
      vehicle = now;
      heard = millis();
    }
  }
}

void setup() {
  Serial.begin(115200);
  if (!platform_start(&platform, &hobby_hexapod_settings)) {
    Serial.println("the robot cannot be at home");
    while (true) delay(1000);
  }
  for (int i = 0; i < DRIVES; i++) ledcAttach(pins[i], 50, 16);  // 20 ms in 65536 counts
  due = micros();
}

void loop() {
  listen();
  if (millis() - heard > silence) vehicle = {};
  if ((long)(micros() - due) < 0) return;
  due += (unsigned long)(1e6f * hobby_hexapod_settings.period);
  long pulses[DRIVES];
  platform_step(&platform, &vehicle, pulses);
  for (int i = 0; i < DRIVES; i++)
    ledcWrite(pins[i], (uint32_t)(middle[i] * 65536L / 20000L + sign[i] * platform.counts[i]));
}
