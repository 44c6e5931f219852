import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonHeadScan } from '../../../electron/core/gateway/json-head.ts';

function scan(text: string, pieceBytes = 1_000_000): JsonHeadScan {
  const found = new JsonHeadScan();
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) found.feed(bytes.subarray(at, at + pieceBytes));
  return found;
}

describe('the head of a JSON body', () => {
  it('is what JSON.parse says of the same body, wherever the chunks are cut', () => {
    const name = fc.string({ unit: 'binary', maxLength: 12 });
    const body = fc.record(
      {
        messages: fc.array(fc.record({ role: fc.constant('user'), content: fc.string(), model: name })),
        model: name,
        user: name,
        stream: fc.boolean(),
        metadata: fc.dictionary(fc.constantFrom('model', 'user', 'stream', 'a'), fc.jsonValue()),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(
        body,
        fc.oneof(fc.integer({ min: 1, max: 9 }), fc.constant(1_000_000)),
        fc.constantFrom(undefined, 2),
        (value, pieces, indent) => {
          const text = JSON.stringify(value, null, indent);
          const { head, done } = scan(text, pieces);
          // Half a surrogate pair can't be written in UTF-8.
          if (!text.isWellFormed()) return;
          const parsed = JSON.parse(text);
          expect(head.model?.value ?? null).toBe(parsed.model ?? null);
          expect(head.user).toBe(parsed.user ?? null);
          expect(head.stream).toBe(parsed.stream ?? null);
          expect(done).toBe(true);
          if (head.model === null) return;
          const token = Buffer.from(text).subarray(head.model.from, head.model.to).toString();
          expect(JSON.parse(token)).toBe(parsed.model);
        },
      ),
    );
  });

  it('does not take a model inside another object, a list or a text for its own', () => {
    expect(scan('{"a":{"model":"x"},"b":[{"model":"y"}],"c":"\\"model\\":\\"z\\""}').head.model).toBeNull();
  });

  it('judges nothing: what is not a JSON object has no head and no error', () => {
    for (const text of ['', 'model=x', '[{"model":"x"}]', '{"model":', '{"model":5}', '"model"'])
      expect(scan(text).head.model).toBeNull();
  });

  it('finds a model behind an image of many megabytes', () => {
    const text = `{"messages":"${'A'.repeat(8 * 1024 * 1024)}","model":"m"}`;
    expect(scan(text, 65_536).head.model?.value).toBe('m');
  });
});
