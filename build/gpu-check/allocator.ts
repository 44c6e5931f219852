import { createInterface } from 'node:readline';
import { openCudaCard } from './cuda.ts';

/**
 * A program that holds as much of a card as it is told: `alloc BYTES` and `free` on its standard input, one
 * line of JSON as the answer to each, `{"ok":true}` or `{"ok":false,"why"}`. The first line comes by itself,
 * once its context is there. It ends with its input.
 */
export async function runAllocator(pciAddress: string): Promise<number> {
  const say = (answer: { readonly ok: boolean; readonly why?: string; readonly name?: string }): void =>
    void process.stdout.write(`${JSON.stringify(answer)}\n`);
  const card = openCudaCard(pciAddress);
  if (!card.ok) {
    say({ ok: false, why: card.error.message });
    return 1;
  }
  say({ ok: true, name: card.value.name });
  const held: bigint[] = [];
  for await (const line of createInterface({ input: process.stdin })) {
    const [word, amount] = line.trim().split(' ');
    if (word === 'alloc') {
      const got = card.value.allocate(Number(amount));
      if (got.ok) held.push(got.value);
      say(got.ok ? { ok: true } : { ok: false, why: got.error.message });
    } else if (word === 'free') {
      const freed = held.splice(0).map((address) => card.value.free(address));
      const wrong = freed.find((one) => !one.ok);
      say(wrong === undefined || wrong.ok ? { ok: true } : { ok: false, why: wrong.error.message });
    } else say({ ok: false, why: `alloc BYTES or free, not ${line}` });
  }
  card.value.close();
  return 0;
}
