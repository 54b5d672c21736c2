/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a Cortex-M7 board (mps2-an500) for the demo: its start, and a clock that counts instructions. */
#include <stdint.h>

#define CPACR (*(volatile uint32_t *)0xE000ED88u)
#define SYST_CSR (*(volatile uint32_t *)0xE000E010u)
#define SYST_RVR (*(volatile uint32_t *)0xE000E014u)
#define SYST_CVR (*(volatile uint32_t *)0xE000E018u)
enum { PER_TICK = 40 }; /* the clock has 25 MHz, and under `qemu -icount shift=0` an instruction takes 1 ns */

extern uint32_t stack_top[];
void _start(void); /* of newlib: zeroes memory, then calls main */

static void reset(void)
{
    CPACR |= 0xFu << 20; /* the floating-point unit on */
    __asm volatile("dsb\n isb");
    SYST_RVR = 0xFFFFFFu;
    SYST_CVR = 0;
    SYST_CSR = 5;
    _start();
}

static void fault(void)
{
    for (;;)
        ;
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, fault};

uint32_t instructions(void)
{
    static uint32_t last = 0xFFFFFFu, total;
    const uint32_t now = SYST_CVR;
    total += ((last - now) & 0xFFFFFFu) * PER_TICK;
    last = now;
    return total;
}

/* A million repetitions of two instructions, as counted by the clock. */
void two_million(void)
{
    uint32_t n = 1000000;
    __asm volatile("0: subs %0, #1\n bne 0b" : "+r"(n) : : "cc");
}
