import { describe, expect, it } from 'vitest';
import type { JsonHead } from '../../../electron/core/gateway/json-head.ts';
import { FormHeadScan } from '../../../electron/core/gateway/multipart-head.ts';

const TYPE = 'multipart/form-data; boundary=xyz';

function form(parts: readonly string[]): Buffer {
  return Buffer.from(`${parts.map((part) => `--xyz\r\n${part}\r\n`).join('')}--xyz--\r\n`);
}

function scan(body: Buffer, step = body.length, type = TYPE): JsonHead {
  const scanning = new FormHeadScan(type);
  for (let at = 0; at < body.length; at += step) scanning.feed(body.subarray(at, at + step));
  return scanning.head;
}

const FILE =
  'Content-Disposition: form-data; name="file"; filename="a; name=model.wav"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n--xy name="model"\r\n\r\nno';

describe('the fields of a form', () => {
  it('are found behind a file, wherever the body is cut', () => {
    const body = form([
      FILE,
      'Content-Disposition: form-data; name="model"\r\n\r\nwhïsper',
      'content-disposition: form-data;name=stream\r\n\r\ntrue',
      'Content-Disposition: form-data; name="user"\r\n\r\nme',
    ]);
    for (const step of [1, 2, 7, 64, body.length]) {
      const head = scan(body, step);
      expect(head).toMatchObject({ model: { value: 'whïsper' }, stream: true, user: 'me' });
      expect(body.subarray(head.model?.from, head.model?.to).toString()).toBe('whïsper');
    }
  });

  it('are none in a file, in a file’s name, or in a field that begins the same', () => {
    expect(scan(form([FILE])).model).toBeNull();
    expect(scan(form(['Content-Disposition: form-data; name="models"\r\n\r\nx'])).model).toBeNull();
    const named = 'Content-Disposition: form-data; name="model"; filename="model"\r\n\r\nx';
    expect(scan(form([named])).model).toBeNull();
  });

  it('may be empty, and nothing is taken for one where there is no boundary or no end', () => {
    expect(scan(form(['Content-Disposition: form-data; name="model"\r\n\r\n'])).model?.value).toBe('');
    expect(scan(Buffer.from('--xyz\r\nmodel'), 3, 'multipart/form-data').model).toBeNull();
    const endless = Buffer.from(
      `--xyz\r\nContent-Disposition: form-data; name="model"\r\n\r\n${'m'.repeat(9000)}`,
    );
    expect(scan(endless, 100).model).toBeNull();
  });

  it('cost no memory of the file before them', () => {
    const scanning = new FormHeadScan(TYPE);
    scanning.feed(Buffer.from('--xyz\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'));
    const part = Buffer.alloc(64 * 1024, '\r');
    for (let count = 0; count < 1024; count += 1) scanning.feed(part);
    scanning.feed(
      Buffer.from('\r\n--xyz\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--xyz--'),
    );
    expect(scanning.head.model?.value).toBe('m');
    expect(scanning.done).toBe(true);
  });
});
