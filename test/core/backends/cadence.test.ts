import { describe, expect, it } from 'vitest';
import { pauses, singleFile } from '../../../electron/core/backends/cadence.ts';

describe('one question at a time', () => {
  it('serves whoever asks meanwhile with one more, which begins after they asked', async () => {
    const begun: PromiseWithResolvers<void>[] = [];
    const file = singleFile(() => {
      const work = Promise.withResolvers<void>();
      begun.push(work);
      return work.promise;
    });
    const first = file.run();
    const [second, third] = [file.run(), file.run()];
    expect(begun).toHaveLength(1);
    begun[0]?.resolve();
    await first;
    await Promise.resolve();
    expect(begun).toHaveLength(2);
    begun[1]?.resolve();
    await Promise.all([second, third]);
    await file.settled();
    expect(begun).toHaveLength(2);
  });

  it('goes on after one that failed', async () => {
    let count = 0;
    const file = singleFile(async () => {
      count += 1;
      if (count === 1) throw new Error('once');
    });
    await expect(file.run()).rejects.toThrow('once');
    await file.run();
    expect(count).toBe(2);
  });
});

describe('a pause', () => {
  it('ends when it is woken, and is none where all has stopped', async () => {
    const stopped = new AbortController();
    const { pause, wake } = pauses(stopped.signal);
    const long = pause(3_600_000);
    wake();
    await long;
    stopped.abort();
    await pause(3_600_000);
  });

  it('ends by itself', async () => {
    await pauses(new AbortController().signal).pause(1);
  });
});
