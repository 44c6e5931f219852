import { describe, expect, it } from 'vitest';
import { LineSplitter } from '../../../../electron/core/engine/socket/line-splitter.ts';

const texts = (splitter: LineSplitter, ...chunks: (string | Buffer)[]) =>
  chunks
    .flatMap((chunk) => splitter.push(Buffer.from(chunk)))
    .map((line) => (line.kind === 'line' ? line.text : line.kind));

describe('cutting a stream into lines', () => {
  it('takes lines as they come, in one piece or byte by byte, with either end', () => {
    expect(texts(new LineSplitter(100), 'HELP\r\nLIST\nSTA', 'TUS\r', '\n\n')).toEqual([
      'HELP',
      'LIST',
      'STATUS',
      '',
    ]);
    const letters = [...Buffer.from('é\r\nü\n')].map((byte) => Buffer.from([byte]));
    expect(texts(new LineSplitter(100), ...letters)).toEqual(['é', 'ü']);
  });

  it('tells an over-long line once and reads on after it, wherever the chunks are cut', () => {
    const splitter = new LineSplitter(8);
    expect(texts(splitter, '123456789', 'x'.repeat(1000), 'tail\nLIST\n')).toEqual(['too_long', 'LIST']);
    expect(texts(splitter, '12345678\n123456789\nok\n')).toEqual(['12345678', 'too_long', 'ok']);
    expect(splitter.end()).toEqual([]);
  });

  it('gives what came last without its end', () => {
    const splitter = new LineSplitter(8);
    splitter.push(Buffer.from('STATUS'));
    expect(splitter.end()).toEqual([{ kind: 'line', text: 'STATUS' }]);
  });
});
