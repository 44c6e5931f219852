/**
 * Just enough XML for nvidia-smi's own output: elements, attributes, text, the five entities and
 * character references. Comments, the declaration, the DOCTYPE and CDATA marks are stepped over. A
 * file that ends early gives what was there; elements left open are closed.
 */
export interface XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: XmlElement[];
  /** All text directly inside, trimmed. */
  text: string;
}

export function parseXml(source: string): XmlElement {
  const root: XmlElement = { name: '', attributes: {}, children: [], text: '' };
  const open: XmlElement[] = [root];
  const token =
    /<!--[\s\S]*?(?:-->|$)|<!\[CDATA\[([\s\S]*?)(?:\]\]>|$)|<[?!][^>]*>|<(\/?)([\w.:-]+)([^>]*?)(\/?)>|([^<]+)|</g;
  for (const [, cdata, closing, name, attributes, selfClosing, text] of source.matchAll(token)) {
    const current = open.at(-1) ?? root;
    if (cdata !== undefined) current.text += cdata;
    else if (text !== undefined) current.text += decode(text);
    else if (name !== undefined && closing === '/') {
      // A stray end tag closes nothing; a missing one is closed by its parent's.
      const at = open.findLastIndex((element) => element.name === name);
      if (at > 0) open.length = at;
    } else if (name !== undefined) {
      const element = { name, attributes: readAttributes(attributes ?? ''), children: [], text: '' };
      current.children.push(element);
      if (selfClosing !== '/') open.push(element);
    }
  }
  // The text of an element that was still open may be half a figure: `<total>24` of 24576 MiB.
  for (const element of open.slice(1)) element.text = '';
  return root;
}

/** First element on a path of names below `from`. */
export function xmlAt(from: XmlElement, ...path: readonly string[]): XmlElement | null {
  let element: XmlElement | undefined = from;
  for (const name of path) element = element?.children.find((child) => child.name === name);
  return element ?? null;
}

/** Text of the first element on a path; null when there is none. */
export function xmlText(from: XmlElement, ...path: readonly string[]): string | null {
  return xmlAt(from, ...path)?.text.trim() ?? null;
}

/** Every element of this name, at any depth, not looking inside those found. */
export function xmlAll(from: XmlElement, name: string): readonly XmlElement[] {
  return from.children.flatMap((child) => (child.name === name ? [child] : xmlAll(child, name)));
}

function readAttributes(text: string): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const [, name, double, single] of text.matchAll(/([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)) {
    if (name !== undefined) attributes[name] = decode(double ?? single ?? '');
  }
  return attributes;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function decode(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (typeof name === 'string') return ENTITIES[name] ?? whole;
    const code = typeof hex === 'string' ? Number.parseInt(hex, 16) : Number(decimal);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
