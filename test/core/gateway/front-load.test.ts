import { describe, expect, it } from 'vitest';
import { loadWish } from '../../../electron/core/gateway/front-load.ts';

describe('what loads a model on a router without working on it', () => {
  it('is its own word for it, and a GET that names a model', () => {
    expect(loadWish('POST', '/models/load')).toBe('load');
    expect(loadWish('POST', '/models%2Fload?x=1')).toBe('load');
    const loads = { loads: true, wakes: false };
    expect(loadWish('GET', '/props?model=a%2Fb')).toEqual({ model: 'a/b', ...loads });
    expect(loadWish('HEAD', '/props?model=a')).toEqual({ model: 'a', ...loads });
  });

  it('is a look at its slots, which also wakes one that sleeps', () => {
    expect(loadWish('GET', '/slots?model=a')).toEqual({ model: 'a', loads: true, wakes: true });
    expect(loadWish('GET', '/slots?model=a&autoload=0')).toEqual({ model: 'a', loads: false, wakes: true });
    expect(loadWish('GET', '/slots')).toEqual({ model: null, loads: false, wakes: true });
  });

  it('is nothing else', () => {
    for (const [method, path] of [
      ['GET', '/props?model=a&autoload=false'],
      ['GET', '/metrics?model=a&autoload=0'],
      ['GET', '/models'],
      ['GET', '/?x=1'],
      ['POST', '/models/unload'],
      ['POST', '/props?model=a'],
      ['DELETE', '/models/load'],
    ] as const)
      expect(loadWish(method, path), `${method} ${path}`).toBeNull();
  });
});
