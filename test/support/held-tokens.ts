export interface HeldTokens {
  /** Tokens begun so far. */
  asked(): number;
  /** For the stand-in engine: waited for before each token. */
  pace(): Promise<void>;
  /** Lets so many tokens come, now or when they are asked for. */
  let(count: number): void;
}

/** An engine's pace at which a token comes when the test lets it. */
export function heldTokens(): HeldTokens {
  let letGo = 0;
  let asked = 0;
  const waiting: (() => void)[] = [];
  return {
    asked: () => asked,
    pace() {
      asked += 1;
      if (letGo > 0) {
        letGo -= 1;
        return Promise.resolve();
      }
      return new Promise((resolve) => waiting.push(resolve));
    },
    let(count) {
      for (let at = 0; at < count; at += 1) {
        const next = waiting.shift();
        if (next === undefined) letGo += 1;
        else next();
      }
    },
  };
}
