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
  const clock = { nowMs: 0 };
  const response = {
    writableNeedDrain: false,
    write(part: Buffer, done?: () => void) {
      sent.push(part.toString());
      done?.();
      return !this.writableNeedDrain;
    },
    end(part?: Buffer) {
      sent.push(`end ${part?.toString() ?? ''}`);
    },
    destroy() {
      sent.push('destroyed');
    },
  };
  const outlet = new Outlet(response, () => clock.nowMs);
  const pass = (ms: number): void => {
    clock.nowMs += ms;
    vi.advanceTimersByTime(ms);
  };
  return { sent, outlet, response, pass };
}

describe('the parts of an answer', () => {
  it('go out at once, each by itself, at the pace of a model that is read along', () => {
    const { sent, outlet, pass } = recording();
    for (let index = 0; index < 100; index += 1) {
      outlet.write(Buffer.from(`${index}`));
      expect(sent).toHaveLength(index + 1);
      pass(10);
    }
  });

  it('go out together where they come faster than that, in order, none more than a moment late', () => {
    const { sent, outlet, pass } = recording();
    for (let index = 0; index < 1000; index += 1) {
      outlet.write(Buffer.from(`${index},`));
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

  it('of a short answer go out at once however close they are', () => {
    const { sent, outlet } = recording();
    for (const part of ['role', 'first', 'word']) outlet.write(Buffer.from(part));
    expect(sent).toEqual(['role', 'first', 'word']);
  });

  it('do not pile up: a large one goes out with what is held before it', () => {
    const { sent, outlet } = recording();
    for (let index = 0; index < 20; index += 1) outlet.write(Buffer.from('x'));
    const before = sent.length;
    outlet.write(Buffer.alloc(20_000, 'y'));
    expect(sent).toHaveLength(before + 1);
  });

  it('are held back when the client takes none', () => {
    const { outlet, response } = recording();
    for (let index = 0; index < 20; index += 1) outlet.write(Buffer.from('x'));
    response.writableNeedDrain = true;
    expect(outlet.write(Buffer.from('x'))).toBe(false);
  });

  it('go out before a break, and are forgotten when the client has left', () => {
    const broken = recording();
    for (let index = 0; index < 9; index += 1) broken.outlet.write(Buffer.from(`${index}`));
    broken.outlet.break();
    expect(broken.sent.slice(-2)).toEqual(['8', 'destroyed']);
    const left = recording();
    for (let index = 0; index < 9; index += 1) left.outlet.write(Buffer.from(`${index}`));
    left.outlet.drop();
    left.pass(100);
    expect(left.sent).toHaveLength(8);
  });
});
