import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSseParser } from '../../electron/cli/event-stream.ts';

describe('reading an event stream', () => {
  it('gives the same frames however the bytes are cut', () => {
    const text =
      'retry: 2000\n\nid: 1\ndata: {"a":1}\n\n: alive\n\nevent: x\r\nid: 2\r\ndata: b\r\ndata:c\r\n\r\n';
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: text.length }), { maxLength: 8 }), (cuts) => {
        const found: string[] = [];
        const parse = createSseParser((data) => found.push(data));
        const edges = [0, ...cuts.toSorted((a, b) => a - b), text.length];
        for (const [index, edge] of edges.slice(1).entries()) parse(text.slice(edges[index], edge));
        expect(found).toEqual(['{"a":1}', 'b\nc']);
      }),
    );
  });

  it('gives nothing of a frame that was cut off', () => {
    const found: string[] = [];
    createSseParser((data) => found.push(data))('data: half');
    expect(found).toEqual([]);
  });
});
