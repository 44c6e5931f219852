import { expect, it } from 'vitest';
import { Orders } from '../../../electron/core/loop/orders.ts';

it('an order stands until whoever gave it takes it back, whatever others order meanwhile', () => {
  let changes = 0;
  const orders = new Orders(() => {
    changes += 1;
  });
  const first = orders.drain();
  const second = orders.drain();
  const room = orders.wantFree('sim:0', 8);
  expect(orders.draining).toBe(true);
  expect(orders.wantedFree).toEqual([{ deviceId: 'sim:0', freeBytes: 8 }]);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  expect(orders.draining).toBe(true);
  room[Symbol.dispose]();
  expect(orders.wantedFree).toEqual([]);
  second[Symbol.dispose]();
  expect(orders.draining).toBe(false);
  expect(changes).toBe(6);
});
