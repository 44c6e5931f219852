/**
 * Keeps keys and passwords out of what is told: events, the state, logs, answers. Servers say back what
 * they were sent ("Incorrect API key provided: …"), and people put keys into addresses and options. What
 * is known to be one is taken out wherever it stands; what has the shape of one, too.
 */

/** Shorter ones, and words such as `lm-studio` that people write where no key is needed, are no secret. */
const LEAST_CHARS = 8;
const LONG_CHARS = 20;
const HIDDEN = '[hidden]';

/** What stands before a secret, and the secret: the first group stays. Bounded, since servers send what they like. */
const SHAPES: readonly RegExp[] = [
  // http://user:password@host, also where the password is written as it is, with slashes; a port is none.
  /(\b[a-z][a-z0-9+.-]{0,20}:\/\/)(?:[^\s/?#"'<>]{1,400}|[^\s/?#"'<>:@]{0,100}:(?!\d{1,5}[/?#])[^\s"'<>@]{1,400})(?=@)/gi,
  // ?api_key=…
  /([?&;](?:[\w-]{0,40}(?:key|token|secret|password|passwd|signature)|auth|sig|pw)=)[^\s&;#"'<>)]+/gi,
  // Authorization: Bearer …, and without its name
  /(\b(?:bearer|basic) +)[\w.~+/=-]{6,}/gi,
  // x-api-key: …, "apiKey": "…", password = …
  /(\b(?:[\w-]{0,40}(?:api[-_]?key|password|passwd|secret)|(?:access|auth|refresh|id)[-_]?token|authorization)["']? *[:=] *["']?)(?!(?:bearer|basic)\b)[^\s"',;})]{6,}/gi,
  // --api-key …, --api-key=…; a file's name is none
  /(--?[\w-]{0,40}(?:api-?key|token|password|secret)[= ])[^\s-]\S*/gi,
  // As their makers mark them: OpenAI and Anthropic, Hugging Face, GitHub, GitLab, Groq, xAI, Google, Slack, AWS, NVIDIA; JSON web tokens.
  /()\b(?:[sprx]k-|hf_|gh[opsur]_|github_pat_|glpat-|gsk_|xai-|AIza|xox[abeoprs]-|AKIA|nvapi-|r8_)[\w-]{10,}/g,
  /()\beyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?/g,
];

export interface Secrets {
  /** null, empty and what is too short or too plain to be one are passed over. */
  learn(value: string | null | undefined): void;
  /** Values of options such as `--api-key`. */
  learnFromCommand(command: readonly string[]): void;
  /** The text without any. */
  hide(text: string): string;
}

export function createSecrets(): Secrets {
  /** Longest first: one may be the beginning of another. */
  let known: readonly string[] = [];
  const learned = new Set<string>();
  const learn = (value: string | null | undefined): void => {
    const text = value?.trim() ?? '';
    // Asked for with each request that has a key.
    if (learned.has(text) || !isSecret(text)) return;
    learned.add(text);
    known = [...new Set([...known, ...spellings(text)])].sort((one, other) => other.length - one.length);
  };
  return {
    learn,
    learnFromCommand(command) {
      for (const [index, word] of command.entries()) {
        const [, given] = /^--?[\w-]*(?:key|token|password|secret)(?:=(.*))?$/is.exec(word) ?? [null];
        if (given !== null) learn(given ?? command[index + 1]);
      }
    },
    hide(text) {
      let hidden = text;
      for (const value of known) if (hidden.includes(value)) hidden = hidden.replaceAll(value, HIDDEN);
      for (const shape of SHAPES) hidden = hidden.replaceAll(shape, `$1${HIDDEN}`);
      return hidden;
    },
  };
}

function isSecret(text: string): boolean {
  return text.length >= LONG_CHARS || (text.length >= LEAST_CHARS && /\d/.test(text));
}

/** As it stands in an address, in JSON and in basic authentication too. */
function spellings(text: string): readonly string[] {
  const encoded = Buffer.from(text).toString('base64');
  return [text, encodeURIComponent(text), JSON.stringify(text).slice(1, -1), encoded.replace(/=+$/, '')];
}

/** Those of this process: whoever comes to know one tells it here, once. */
export const secrets = createSecrets();
