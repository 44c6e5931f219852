const MOST_LINES = 40;
const FAILED = /fail|error|unable|invalid|unknown|missing|unsupported|out of memory|not within|corrupt/i;
const MEMORY =
  /out of memory|unable to allocate|failed to allocate|cudaMalloc|ErrorOutOfDeviceMemory|ErrorOutOfHostMemory|not enough memory|insufficient/i;

/** The last lines llama.cpp logged: it says why something failed there, and only "failed" in its answer. */
export class LlamaLog {
  readonly #lines: string[] = [];

  take(line: string): void {
    this.#lines.push(line.trim());
    if (this.#lines.length > MOST_LINES) this.#lines.shift();
  }

  /** What is logged from now on is the answer's. */
  forget(): void {
    this.#lines.length = 0;
  }

  /** The line that says what failed, or what was thrown; without a full stop. */
  why(thrown: string): string {
    const line = this.#lines.find((one) => FAILED.test(one)) ?? thrown;
    return line.slice(0, 300).replace(/[.\s]+$/, '');
  }

  isMemory(thrown: string): boolean {
    return MEMORY.test(thrown) || this.#lines.some((line) => MEMORY.test(line));
  }
}
