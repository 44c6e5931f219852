import { describe, expect, it } from 'vitest';
import { DeviceQueue, type Pass } from '../../../electron/core/gateway/device-queue.ts';

const NEVER = new AbortController().signal;

function queueAt(options: { readonly agedMs?: number; readonly lingerMs?: number } = {}) {
  const clock = { nowMs: 0 };
  const queue = new DeviceQueue({ monotonicMs: () => clock.nowMs, lingerMs: 0, agedMs: 30_000, ...options });
  const started: string[] = [];
  const enter = (name: string, turnClass: 'interactive' | 'batch', signal = NEVER): Promise<Pass | null> => {
    const entered = Promise.resolve(queue.enter(turnClass, { signal }));
    void entered.then((pass) => pass !== null && started.push(name));
    return entered;
  };
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return { clock, queue, started, enter, settle };
}

describe('batch yields to interactive on its device', () => {
  it('an interactive request starts at once, whatever runs and waits', async () => {
    const { enter, started, settle } = queueAt();
    for (let index = 0; index < 10; index += 1) void enter(`batch ${index}`, 'batch');
    void enter('person', 'interactive');
    await settle();
    expect(started).toContain('person');
  });

  it('no batch starts while one is in flight; they go on when it is over', async () => {
    const { enter, started, settle } = queueAt();
    const person = await enter('person', 'interactive');
    void enter('batch', 'batch');
    await settle();
    expect(started).toEqual(['person']);
    person?.[Symbol.dispose]();
    await settle();
    expect(started).toEqual(['person', 'batch']);
  });

  it('tells batch workers beside it to make way, and when they may go on', async () => {
    const { queue, enter } = queueAt();
    const person = await enter('person', 'interactive');
    expect(queue.snapshot().yield).toBe(true);
    person?.[Symbol.dispose]();
    expect(queue.snapshot().yield).toBe(false);
  });

  it('sixteen at once run at its depth, in their order', async () => {
    const { enter, started, queue, settle } = queueAt();
    const passes = Array.from({ length: 16 }, (_, index) => enter(String(index), 'batch'));
    await settle();
    const depth = queue.snapshot().depth;
    expect(depth).toBeLessThan(16);
    expect(started).toEqual(Array.from({ length: depth }, (_, index) => String(index)));
    (await passes[0])?.[Symbol.dispose]();
    await settle();
    expect(started.at(-1)).toBe(String(depth));
  });

  it('halves its depth where interactive ones feel it, and grows again while there are none', async () => {
    const { queue, clock, enter } = queueAt();
    const before = queue.snapshot().depth;
    queue.felt(100, 0);
    queue.felt(110, before);
    expect(queue.snapshot().depth).toBe(before);
    queue.felt(300, before);
    expect(queue.snapshot().depth).toBe(before / 2);
    clock.nowMs += 10_000;
    await enter('batch', 'batch');
    expect(queue.snapshot().depth).toBe(before / 2 + 1);
  });

  it('one that has waited long starts all the same, one at a time', async () => {
    const { enter, started, clock, settle } = queueAt({ agedMs: 20 });
    await enter('person', 'interactive');
    void enter('old', 'batch');
    void enter('older', 'batch');
    clock.nowMs += 30;
    await new Promise((resolve) => setTimeout(resolve, 60));
    await settle();
    expect(started).toEqual(['person', 'old']);
  });

  it('makes way for the next turn of a session that had to go elsewhere', async () => {
    const { queue, clock, enter, started, settle } = queueAt();
    queue.expect(2_000);
    void enter('batch', 'batch');
    await settle();
    expect(started).toEqual([]);
    expect(queue.snapshot().yield).toBe(true);
    clock.nowMs += 2_000;
    void enter('next', 'batch');
    await settle();
    expect(started).toEqual(['batch', 'next']);
    queue.expect(2_000);
    const person = await enter('person', 'interactive');
    person?.[Symbol.dispose]();
    expect(queue.snapshot().yield).toBe(false);
  });

  it('knows when batch may go on, which nothing else would tell', async () => {
    const { queue, clock, enter } = queueAt({ lingerMs: 200 });
    expect(queue.calmInMs()).toBeNull();
    const person = await enter('person', 'interactive');
    expect(queue.calmInMs()).toBeNull();
    person?.[Symbol.dispose]();
    expect(queue.calmInMs()).toBe(200);
    clock.nowMs += 200;
    expect([queue.calmInMs(), queue.snapshot().yield]).toEqual([null, false]);
  });

  it('one whose client leaves waits no longer', async () => {
    const { enter, queue } = queueAt();
    await enter('person', 'interactive');
    const gone = new AbortController();
    const entered = enter('batch', 'batch', gone.signal);
    gone.abort();
    expect(await entered).toBeNull();
    expect(queue.snapshot().waiting).toBe(0);
  });
});
