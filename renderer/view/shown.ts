/**
 * A name or reason from outside, for a sentence of ours. Marks that turn the direction of what follows
 * (Unicode, UAX 9: embeddings, overrides, isolates) are written out: in a name they could make a sentence
 * read as another one. Letters of any script, emoji among them, stay as they are.
 */
export function shown(text: string): string {
  return text.replaceAll(
    /[\u202a-\u202e\u2066-\u2069]/g,
    (mark) => `\\u{${(mark.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
