/** Answers of the runtime, as the page's tests and its screenshots have them. */
import type { LoadPlan } from '../../shared/questions.ts';

export function samplePlan(change: Partial<LoadPlan>): LoadPlan {
  return {
    model: 'router/qwen-27b',
    verdict: 'now',
    deviceId: 'pci:0000:03:00.0',
    needBytes: 18.6e9,
    needFrom: 'measured before',
    freeBytes: 20.7e9,
    floorBytes: 4e9,
    capBytes: 30.78e9,
    bookedBytes: 11.8e9,
    outstandingBytes: 0,
    leaving: [],
    freeAfterBytes: 2.1e9,
    denial: null,
    risks: [],
    alwaysAnyway: false,
    contexts: [
      { tokens: 8192, bytes: 17.4e9, verdict: 'now', present: false },
      { tokens: 32_768, bytes: 18.6e9, verdict: 'leaving', present: true },
      { tokens: 131_072, bytes: 24.1e9, verdict: 'denied', present: false },
    ],
    ...change,
  };
}
