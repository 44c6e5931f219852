import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sseParser } from '../../../electron/core/backends/sse.ts';

describe('event stream parser', () => {
  it('gives each message when its blank line comes, with its name or `message`', () => {
    const parser = sseParser();
    expect(parser.push('event: a\ndata: 1\n')).toEqual([]);
    expect(parser.push('\ndata:2\n\n')).toEqual([
      { event: 'a', data: '1' },
      { event: 'message', data: '2' },
    ]);
  });

  it('joins lines of data, passes over comments and unknown fields', () => {
    expect(sseParser().push(': keep-alive\nid: 7\ndata: x\ndata:  y\n\n')).toEqual([
      { event: 'message', data: 'x\n y' },
    ]);
  });

  it('gives the same messages however the stream is cut, for every kind of line end', () => {
    const stream = 'data: {"a":1}\r\n\r\ndata: b\rdata: c\r\revent: e\ndata: d\n\n: x\n\n';
    const whole = sseParser().push(stream);
    expect(whole.map((message) => message.data)).toEqual(['{"a":1}', 'b\nc', 'd']);
    fc.assert(
      fc.property(fc.array(fc.nat(stream.length), { maxLength: 12 }), (cuts) => {
        const parser = sseParser();
        const edges = [0, ...cuts.sort((a, b) => a - b), stream.length];
        const parts = edges.slice(1).map((end, index) => stream.slice(edges[index], end));
        expect(parts.flatMap((part) => parser.push(part))).toEqual(whole);
      }),
    );
  });

  it('keeps no line that never ends', () => {
    const parser = sseParser(100);
    for (let round = 0; round < 50; round += 1) parser.push('x'.repeat(50));
    expect(parser.push('\n\ndata: ok\n\n')).toEqual([{ event: 'message', data: 'ok' }]);
  });

  it('keeps no message of empty lines that never ends', () => {
    const parser = sseParser(100);
    for (let round = 0; round < 50; round += 1) parser.push('data:\n'.repeat(50));
    const [message] = parser.push('\n');
    expect(message?.data.length).toBeLessThanOrEqual(100);
  });
});
