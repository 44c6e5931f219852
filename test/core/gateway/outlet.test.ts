import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Outlet } from '../../../electron/core/gateway/outlet.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function recording() {
  const sent: string[] = [];
  const ended: Buffer[] = [];
  const clock = { nowMs: 0 };
  const drains: (() => void)[] = [];
  const response = {
    takesMore: true,
    write(part: Buffer, done?: () => void) {
      sent.push(part.toString());
      done?.();
      return this.takesMore;
    },
    end(part?: Buffer | string, encoding?: 'latin1') {
      ended.push(Buffer.isBuffer(part) ? part : Buffer.from(part ?? '', encoding));
      sent.push(`end ${part?.toString() ?? ''}`);
    },
    destroy() {
      sent.push('destroyed');
    },
    flushHeaders() {
      sent.push('head');
    },
    once: (_event: 'drain', listener: () => void) => drains.push(listener),
  };
  const source: string[] = [];
  const outlet = new Outlet(
    response,
    { pause: () => source.push('pause'), resume: () => source.push('resume') },
    () => clock.nowMs,
  );
  /** As one read of the upstream's socket brings them. */
  const read = async (...parts: string[]): Promise<void> => {
    for (const part of parts) outlet.write(Buffer.from(part));
    await new Promise((resolve) => process.nextTick(resolve));
  };
  const pass = (ms: number): void => {
    clock.nowMs += ms;
    vi.advanceTimersByTime(ms);
  };
  const drain = (): void => {
    for (const listener of drains.splice(0)) listener();
  };
  return { sent, ended, source, outlet, response, read, pass, drain };
}

describe('the parts of an answer', () => {
  it('go out at once, each by itself, at the pace of a model that is read along', async () => {
    const { sent, read, pass } = recording();
    for (let index = 0; index < 100; index += 1) {
      await read(`${index}`);
      expect(sent).toHaveLength(index + 1);
      pass(10);
    }
  });

  it('go out together where they come faster than that, in order, none more than a moment late', async () => {
    const { sent, outlet, read, pass } = recording();
    for (let index = 0; index < 1000; index += 1) {
      await read(`${index},`);
      pass(1);
      const out = sent.join('').split(',').length - 1;
      expect(index + 1 - out).toBeLessThanOrEqual(9);
    }
    outlet.end();
    expect(sent.length).toBeLessThan(150);
    expect(sent.join('').replace('end ', '')).toBe(
      Array.from({ length: 1000 }, (_, index) => `${index},`).join(''),
    );
  });

  it('of one read go out in one write, and those of a short answer at once however close the reads are', async () => {
    const { sent, read } = recording();
    await read('role', 'first');
    await read('word');
    await read('word', 'last');
    expect(sent).toEqual(['rolefirst', 'word', 'wordlast']);
  });

  it('that come with the end go out with it', () => {
    const { sent, outlet, pass } = recording();
    outlet.begin();
    outlet.write(Buffer.from('all'));
    outlet.end();
    pass(100);
    expect(sent).toEqual(['end all']);
  });

  it('are the same bytes where they go out as text with the head', () => {
    const { ended, outlet } = recording();
    const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    outlet.begin();
    outlet.write(all);
    outlet.end();
    expect(ended).toEqual([all]);
  });

  it('take the head along, which goes alone where they take their time', async () => {
    const soon = recording();
    soon.outlet.begin();
    await soon.read();
    soon.pass(4);
    await soon.read('word');
    soon.pass(100);
    expect(soon.sent).toEqual(['word']);
    const late = recording();
    late.outlet.begin();
    await late.read();
    late.pass(5);
    expect(late.sent).toEqual(['head']);
    await late.read('word');
    expect(late.sent).toEqual(['head', 'word']);
  });

  it('do not pile up: a large one goes out with what is held before it', async () => {
    const { sent, outlet, read } = recording();
    for (let index = 0; index < 20; index += 1) await read('x');
    const before = sent.length;
    outlet.write(Buffer.alloc(20_000, 'y'));
    expect(sent).toHaveLength(before + 1);
  });

  it('are held back when the client takes none, until it does', async () => {
    const { source, response, read, drain } = recording();
    response.takesMore = false;
    await read('x');
    await read('y');
    expect(source).toEqual(['pause']);
    response.takesMore = true;
    drain();
    await read('z');
    expect(source).toEqual(['pause', 'resume']);
  });

  it('go out before a break, and are forgotten when the client has left', async () => {
    const broken = recording();
    for (let index = 0; index < 9; index += 1) await broken.read(`${index}`);
    broken.outlet.break();
    expect(broken.sent.slice(-2)).toEqual(['8', 'destroyed']);
    const left = recording();
    for (let index = 0; index < 9; index += 1) await left.read(`${index}`);
    left.outlet.drop();
    left.pass(100);
    expect(left.sent).toHaveLength(8);
  });
});
