import type { FoundString } from './json-head.ts';

const LONGEST_NAME = 512;

/**
 * The `model` field of a form with files (RFC 7578), as audio uploads have it; null while it has not
 * come by. The offsets are those of the value's bytes.
 */
export function multipartModel(body: Buffer, contentType: string): FoundString | null {
  const boundary = /boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType);
  const marker = boundary?.[1] ?? boundary?.[2];
  if (marker === undefined) return null;
  const delimiter = Buffer.from(`--${marker}`, 'latin1');
  for (let at = body.indexOf(delimiter); at >= 0; at = body.indexOf(delimiter, at + delimiter.length)) {
    const headersFrom = at + delimiter.length;
    const from = body.indexOf('\r\n\r\n', headersFrom);
    if (from < 0 || from - headersFrom > LONGEST_NAME * 4) continue;
    const headers = body.toString('latin1', headersFrom, from);
    if (!/content-disposition:[^\r\n]*;\s*name="?model"?\s*(?:;|\r|\n|$)/i.test(headers)) continue;
    const valueFrom = from + 4;
    const to = body.indexOf('\r\n', valueFrom);
    if (to < 0 || to - valueFrom > LONGEST_NAME) return null;
    return { value: body.toString('utf8', valueFrom, to), from: valueFrom, to };
  }
  return null;
}
