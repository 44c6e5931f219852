import { describe, expect, it } from 'vitest';
import {
  decodeAnswer,
  listAnswer,
  refusalAnswer,
  statusAnswer,
} from '../../../../electron/core/engine/socket/answer.ts';
import type { Denial } from '../../../../electron/core/ledger/booking.ts';

const DENIAL: Denial = {
  code: 'CAP',
  message: 'It does not fit.',
  capBytes: 900,
  bookedBytes: 800,
  requestedBytes: 200,
  freeBytes: 150,
  floorBytes: 100,
  outstandingBytes: 0,
  shortBytes: 100,
};
const answer = {
  agent: 'smol',
  promptTokens: 4,
  generatedTokens: 24,
  stoppedOnEos: false,
  contextFull: false,
  elapsedMs: 125.4951,
  evicted: ['qwen'],
  restored: true,
  reevaluatedTokens: 0,
  text: 'John.\nI am',
};
const deny = (denial: Denial) => refusalAnswer({ error: { code: 'vram_denied', message: '' }, denial });

describe('answers of the ledger socket', () => {
  it('denies with exactly the numbers of its reason', () => {
    expect(deny(DENIAL)).toEqual([
      'ERR VRAM_LEDGER_DENY code=CAP ledger_max_bytes=900 ledger_allocated_bytes=800 requested_table_bytes=200',
    ]);
    expect(deny({ ...DENIAL, code: 'FLOOR' })).toEqual([
      'ERR VRAM_LEDGER_DENY code=FLOOR ledger_max_bytes=900 ledger_allocated_bytes=800 requested_table_bytes=200 free_bytes=150 floor_bytes=100',
    ]);
    expect(deny({ ...DENIAL, code: 'UNKNOWN_FREE', freeBytes: null })[0]).toContain('free_bytes=unknown');
  });

  it('answers a decode in the form other programs read', () => {
    expect(decodeAnswer(answer)).toEqual([
      'OK schema=lmx-daemon/1',
      'OK invoke=DECODE agent_id=smol',
      'OK prompt_tokens=4 generated_tokens=24 stopped_on_eos=false',
      'OK elapsed_ms=125.495',
      'OK kv_swap_evicted=qwen kv_swap_restored=true',
      'BEGIN_RESPONSE',
      'John.',
      'I am',
      'END_RESPONSE',
    ]);
  });

  it('adds what is out of the ordinary after the usual fields', () => {
    const lines = decodeAnswer({
      ...answer,
      evicted: [],
      restored: false,
      reevaluatedTokens: 12,
      contextFull: true,
    });
    expect(lines[2]).toBe('OK prompt_tokens=4 generated_tokens=24 stopped_on_eos=false context_full=true');
    expect(lines[4]).toBe('OK kv_swap_evicted=none kv_swap_restored=false kv_reevaluated_tokens=12');
  });

  it('lets no model end its own answer', () => {
    const lines = decodeAnswer({ ...answer, text: 'a\nEND_RESPONSE\nERR b' });
    expect(lines.filter((line) => line === 'END_RESPONSE')).toHaveLength(1);
    expect(lines.at(-1)).toBe('END_RESPONSE');
    expect(lines).toContain(' END_RESPONSE');
  });

  it('lists an agent a line and a device a line', () => {
    const agent = {
      agent: 'smol',
      path: '/m/a.gguf',
      bookedBytes: 5,
      kv: 'host',
      contextTokens: 64,
      gpuLayers: null,
    } as const;
    expect(listAnswer([agent, { ...agent, agent: 'b', path: '/m/a b.gguf' }])).toEqual([
      'OK agent_id=smol model=/m/a.gguf booked_bytes=5 kv=host',
      'OK agent_id=b model="/m/a b.gguf" booked_bytes=5 kv=host',
      'OK end',
    ]);
    const device = {
      deviceId: 'x',
      maxBytes: 9,
      allocatedBytes: 1,
      freeBytes: null,
      floorBytes: 2,
      agents: 3,
      liveContexts: 1,
    };
    expect(statusAnswer([device])).toEqual([
      'OK schema=lmx-daemon/1',
      'OK ledger_max_bytes=9 ledger_allocated_bytes=1 device_free_bytes=unknown floor_bytes=2 agents=3 live_contexts=1',
    ]);
    expect(statusAnswer([device, device])[2]).toMatch(/live_contexts=1 device=x$/);
  });
});
