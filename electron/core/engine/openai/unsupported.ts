type Fields = Readonly<Record<string, unknown>>;

/**
 * What would make another answer than was asked for, were it passed over: each is refused by its name.
 * Hints that change nothing of what an answer is (`user`, `store`, `reasoning_effort`) are passed over.
 */
const UNSUPPORTED: readonly (readonly [field: string, asks: (value: unknown) => boolean, instead: string])[] =
  [
    ['n', (value) => value !== 1, 'it gives one answer a request'],
    ['logprobs', (value) => value !== false, 'it tells no log probabilities'],
    ['top_logprobs', (value) => value !== 0, 'it tells no log probabilities'],
    ['logit_bias', isFilled, 'it takes no bias of single tokens'],
    ['functions', isFilled, 'send tools instead'],
    ['function_call', (value) => value !== 'none', 'send tools and tool_choice instead'],
    ['grammar', isFilled, 'send a response_format with a JSON Schema instead'],
    ['json_schema', isFilled, 'send it in a response_format'],
    ['modalities', (value) => JSON.stringify(value) !== '["text"]', 'it answers in text only'],
    ['audio', isFilled, 'it answers in text only'],
    ['web_search_options', () => true, 'it searches nothing'],
  ];

/** Why this request can't be followed, in one sentence; null: it can. */
export function unsupported(asked: Fields): string | null {
  const found = UNSUPPORTED.find(([field, asks]) => asked[field] != null && asks(asked[field]));
  return found === undefined ? null : `The embedded engine has no ${found[0]}: ${found[2]}.`;
}

function isFilled(value: unknown): boolean {
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : value !== '';
}
