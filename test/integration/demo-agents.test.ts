import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { landlord } from '../support/landlord.ts';

it('shows three agents where one process has room, and leaves nothing behind', async () => {
  const { code, out, err } = await landlord(['demo', '--agents']);
  expect(err).toBe('');
  expect(code).toBe(0);
  expect(out).toMatch(/Terminal 1 \(llama, pid \d+\): .*: done\./);
  expect(out).toMatch(/Terminal 2 \(qwen, pid \d+\): .*: out of memory/);
  expect(out).toMatch(/Terminal 3 \(smol, pid \d+\): .*: out of memory/);
  const swaps = out
    .split('\n')
    .flatMap((line) => /kv_swap_evicted=(\S+) kv_swap_restored=(\S+)/.exec(line)?.slice(1).join(' ') ?? []);
  expect(swaps).toEqual(['none false', 'smol false', 'qwen false', 'llama true', 'smol true']);
  expect(out).toMatch(/OK ledger_max_bytes=207000000 .* agents=3 live_contexts=1/);
  expect(out.match(/OK agent_id=\w+ model=\S+ booked_bytes=\d+ kv=(?:host|device)$/gm)).toHaveLength(3);
  expect(out).toContain('3 of 3 registered');
  const socket = /nc -U (\S+)/.exec(out)?.[1] ?? '';
  expect(socket).not.toBe('');
  expect(existsSync(socket.slice(0, socket.indexOf('/state/')))).toBe(false);
});
