import { describe, expect, it } from 'vitest';
import { UseCount } from '../../../../electron/core/engine/use-count.ts';

describe('whether a model is asked something', () => {
  it('is told when the first request begins and when the last has ended, of its contexts too', async () => {
    const use = new UseCount();
    const told: string[] = [];
    use.onChange((model, busy) => told.push(`${model} ${busy ? 'busy' : 'idle'}`));
    use.contextOf('c1', 'm1');
    const first = Promise.withResolvers<void>();
    const one = use.during('c1', () => first.promise);
    const two = use.during('m1', async () => undefined);
    await two;
    expect(use.isBusy('m1')).toBe(true);
    first.resolve();
    await one;
    expect(use.isBusy('m1')).toBe(false);
    expect(told).toEqual(['m1 busy', 'm1 idle']);
  });

  it('knows nothing more of the contexts of a model that is gone', async () => {
    const use = new UseCount();
    use.contextOf('c1', 'm1');
    use.contextOf('c2', 'm2');
    use.forgetModel('m1');
    await use.during('c1', async () => expect(use.isBusy('m1')).toBe(false));
    await use.during('c2', async () => expect(use.isBusy('m2')).toBe(true));
  });
});
