import { describe, expect, it } from 'vitest';
import {
  type Conversation,
  parkedState,
  readConversation,
  seating,
  slotFolderOf,
  surplus,
} from '../../../electron/core/parking/conversation.ts';

function conversation(change: Partial<Conversation> = {}): Conversation {
  return {
    modelId: 'router/talk',
    slot: 0,
    path: '/slots/one.slot',
    tokens: 1000,
    bytes: 4_000_000,
    parkedAtMs: 1_000_000,
    print: 'print',
    instance: '10 20',
    msPerToken: 2,
    ...change,
  };
}

const slot = (id: number, tokens: number | null = 0, isProcessing = false) => ({ id, tokens, isProcessing });

describe('which slot a conversation goes back to', () => {
  it('its own where that is free, never two to one, and the newest where slots are few', () => {
    const old = conversation({ parkedAtMs: 1, path: 'old' });
    const young = conversation({ parkedAtMs: 2, path: 'young' });
    const second = conversation({ parkedAtMs: 3, slot: 1, path: 'second' });
    expect(seating([old, young, second], [slot(0), slot(1)])).toEqual([
      { conversation: second, slot: 1 },
      { conversation: young, slot: 0 },
    ]);
    expect(seating([old, young], [slot(0), slot(1)])).toEqual([
      { conversation: young, slot: 0 },
      { conversation: old, slot: 1 },
    ]);
  });

  it('never one that works or holds something: another has begun to speak there (46-cache-ram-cross-conversation)', () => {
    expect(seating([conversation()], [slot(0, 12), slot(1, 0, true)])).toEqual([]);
    expect(seating([conversation()], [slot(0, 12), slot(1)])).toMatchObject([{ slot: 1 }]);
  });
});

describe('what has to go', () => {
  const budget = { limitBytes: 10_000_000, keepMs: 1000 };

  it('the oldest beyond the budget, and what has waited too long', () => {
    const kept = [1, 2, 3].map((atMs) => conversation({ parkedAtMs: atMs, path: String(atMs) }));
    expect(surplus(kept, budget, 3).map((one) => one.path)).toEqual(['1']);
    expect(surplus(kept, budget, 1002).map((one) => one.path)).toEqual(['1']);
    expect(surplus(kept, budget, 5000)).toHaveLength(3);
    expect(surplus([conversation({ bytes: 11_000_000 })], budget, 3)).toHaveLength(1);
  });

  it('all with a limit of nothing, none because the clock was set back', () => {
    expect(surplus([conversation()], { ...budget, limitBytes: 0 }, 0)).toHaveLength(1);
    expect(surplus([conversation()], budget, 0)).toHaveLength(0);
  });
});

it('the folder is the last one its server was told', () => {
  expect(slotFolderOf(['llama-server', '--slot-save-path', '/a', '--slot-save-path=/b'])).toBe('/b');
  expect(slotFolderOf(['llama-server', '--port', '1'])).toBeNull();
  expect(slotFolderOf(null)).toBeNull();
});

it('the state adds them up', () => {
  expect(parkedState([])).toBeNull();
  expect(parkedState([conversation(), conversation({ parkedAtMs: 0, tokens: 5 })])).toEqual({
    conversations: 2,
    tokens: 1005,
    bytes: 8_000_000,
    since: '1970-01-01T00:00:00.000Z',
  });
});

it('a damaged record is none', () => {
  expect(readConversation(JSON.parse(JSON.stringify(conversation())))).toEqual(conversation());
  for (const value of [null, 3, {}, { ...conversation(), tokens: '9' }, { ...conversation(), path: null }])
    expect(readConversation(value)).toBeNull();
});
