import { describe, expect, it } from 'vitest';
import { parseCommand } from '../../../../electron/core/engine/socket/command.ts';

const parse = (line: string) => {
  const done = parseCommand(line, '/home/u');
  return done.ok ? done.value : done.error.message;
};
const plain = { type: 'register', agent: 'smol', bind: false, fit: false, class: null, contextTokens: null };

describe('lines of the ledger socket', () => {
  it.each([
    ['HELP', { type: 'help' }],
    ['status', { type: 'status' }],
    ['  LIST  ', { type: 'list' }],
    ['UNREGISTER smol', { type: 'unregister', agent: 'smol' }],
    [
      'DECODE smol 24 Hello, my name is',
      { type: 'decode', agent: 'smol', maxTokens: 24, prompt: 'Hello, my name is' },
    ],
    [
      'DECODE smol 24   two  spaces ',
      { type: 'decode', agent: 'smol', maxTokens: 24, prompt: '  two  spaces ' },
    ],
    ['DECODE smol\t3\ttab', { type: 'decode', agent: 'smol', maxTokens: 3, prompt: 'tab' }],
    ['DECODE smol 99999999999 x', { type: 'decode', agent: 'smol', maxTokens: 1_000_000, prompt: 'x' }],
    ['DECODE smol 5', { type: 'decode', agent: 'smol', maxTokens: 5, prompt: '' }],
  ])('understands %j', (line, command) => {
    expect(parse(line)).toEqual(command);
  });

  it.each([
    ['REGISTER smol\t/m/a b.gguf', { ...plain, path: '/m/a b.gguf' }],
    ['REGISTER smol /m/a.gguf', { ...plain, path: '/m/a.gguf' }],
    ['REGISTER smol "/m/a \\"b\\"\\t.gguf"', { ...plain, path: '/m/a "b"\t.gguf' }],
    ["REGISTER smol '/m/a\\b.gguf' bind", { ...plain, path: '/m/a\\b.gguf', bind: true }],
    ['REGISTER smol\t"/m/a\tb.gguf"\tfit', { ...plain, path: '/m/a\tb.gguf', fit: true }],
    ['REGISTER smol\t~/a.gguf', { ...plain, path: '/home/u/a.gguf' }],
    [
      'REGISTER smol\t/m/a b.gguf\tbind fit\tclass=batch context=8192',
      { ...plain, path: '/m/a b.gguf', bind: true, fit: true, class: 'batch', contextTokens: 8192 },
    ],
  ])('takes the path and what follows it from %j', (line, command) => {
    expect(parse(line)).toEqual(command);
  });

  it.each([
    ['FLY', 'HELP'],
    ['STATUS now', 'alone'],
    ['REGISTER smol', 'REGISTER smol<TAB>'],
    ['REGISTER smol\tmodel.gguf', 'begins with /'],
    ['REGISTER smol "/m/a.gguf', 'closing "'],
    ['REGISTER smol "/m/a.gguf"bind', 'space or a tab'],
    ['REGISTER smol /m/a b.gguf', 'b.gguf'],
    ['REGISTER smol /m/a.gguf class=fast', 'class=fast'],
    ['REGISTER smol /m/a.gguf context=3', 'context=3'],
    ['REGISTER none\t/m/a.gguf', 'none'],
    ['REGISTER a=b\t/m/a.gguf', 'one word'],
    ['UNREGISTER', 'missing'],
    ['DECODE smol many words', '24'],
    ['DECODE smol 0 x', '24'],
    ['DECODE smol -1 x', '24'],
  ])('says of %j what to write', (line, part) => {
    expect(parse(line)).toContain(part);
  });

  it.each([
    [64, 256],
    [256, 256],
    [257, 512],
    [8192, 8192],
  ])('takes context=%i as the %i tokens that llama.cpp makes of it', (asked, made) => {
    const parsed = parseCommand(`REGISTER smol /m/a.gguf context=${asked}`, '/home/me');
    expect(parsed).toMatchObject({ value: { contextTokens: made } });
  });

  it('repeats no control characters and no endless line', () => {
    const message = parse(`\u001b[31m${'x'.repeat(5000)}`);
    expect(message).not.toContain('\u001b');
    expect(String(message).length).toBeLessThan(200);
  });
});
