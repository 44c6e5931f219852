import { describe, expect, it } from 'vitest';
import { Departure } from '../../../electron/core/gateway/departure.ts';

describe('a client that leaves', () => {
  it('is told once to whoever listens, and not to who has stopped', () => {
    const departure = new Departure();
    const heard: string[] = [];
    departure.onLeft(() => heard.push('one'));
    departure.onLeft(() => heard.push('two'))();
    expect(departure.left).toBe(false);
    departure.leave();
    departure.leave();
    expect(departure.left).toBe(true);
    expect(heard).toEqual(['one']);
  });

  it('raises its signal, whether that was asked for before or after', () => {
    const departure = new Departure();
    const { signal } = departure;
    expect(signal.aborted).toBe(false);
    departure.leave();
    expect(signal.aborted).toBe(true);
    const late = new Departure();
    late.leave();
    expect(late.signal.aborted).toBe(true);
  });
});
