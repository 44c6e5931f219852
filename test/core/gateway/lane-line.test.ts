import { describe, expect, it } from 'vitest';
import { AGED_MS, LaneLines, nextInLine, type Waiting } from '../../../electron/core/gateway/lane-line.ts';

const NOBODY = { model: null, inARow: 0 };

function one(turnClass: Waiting['class'], model: string, sinceMs: number): Waiting {
  return { class: turnClass, model, sinceMs };
}

describe('who is next in line', () => {
  it('interactive before batch, then by arrival', () => {
    const waiting = [one('batch', 'a', 0), one('interactive', 'b', 20), one('interactive', 'c', 10)];
    expect(nextInLine(waiting, NOBODY, 100)).toBe(2);
    expect(nextInLine([], NOBODY, 100)).toBe(-1);
  });

  it('the model that had the last turn first, so that models are not swapped to and fro', () => {
    const waiting = [one('interactive', 'a', 0), one('interactive', 'b', 10)];
    expect(nextInLine(waiting, { model: 'b', inARow: 1 }, 100)).toBe(1);
    expect(nextInLine(waiting, { model: 'b', inARow: 8 }, 100)).toBe(0);
  });

  it('whoever has waited long before all of them, so that nobody starves', () => {
    const waiting = [one('interactive', 'b', AGED_MS - 1), one('batch', 'a', 0)];
    expect(nextInLine(waiting, { model: 'b', inARow: 1 }, AGED_MS)).toBe(1);
  });
});

describe('the line before a lane', () => {
  const signal = new AbortController().signal;

  it('lets one try at a time, the next when that one has it or leaves', async () => {
    const lines = new LaneLines(() => 0);
    const first = await lines.enter('x', { class: 'batch', model: 'a', sinceMs: 0, signal });
    let second = false;
    void lines.enter('x', { class: 'batch', model: 'a', sinceMs: 1, signal }).then(() => {
      second = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(second).toBe(false);
    first?.granted();
    await new Promise((resolve) => setImmediate(resolve));
    expect(second).toBe(true);
  });

  it('has a batch one that only tries make way for an interactive one', async () => {
    const lines = new LaneLines(() => 0);
    const batch = await lines.enter('x', { class: 'batch', model: 'a', sinceMs: 0, signal });
    void lines.enter('x', { class: 'interactive', model: 'a', sinceMs: 1, signal });
    expect(batch?.yielded.aborted).toBe(true);
  });

  it('is empty again when all have gone', async () => {
    const lines = new LaneLines(() => 0);
    const place = await lines.enter('x', { class: 'batch', model: 'a', sinceMs: 0, signal });
    expect(lines.isEmpty('x')).toBe(false);
    place?.[Symbol.dispose]();
    expect(lines.isEmpty('x')).toBe(true);
  });

  it('knows the turns this process holds by name, until each is released', () => {
    const lines = new LaneLines(() => 0);
    lines.took('x', 'one');
    lines.took('x', 'two');
    expect([lines.held('x'), lines.holds('x', 'one'), lines.holds('y', 'one')]).toEqual([2, true, false]);
    let looked = 0;
    lines.onReleased('x', () => {
      looked += 1;
    });
    lines.released('x', 'one');
    expect([lines.held('x'), lines.holds('x', 'one'), looked]).toEqual([1, false, 1]);
  });
});
