/** Runs the set-up's steps and shows each on one line: what it does, and how long it took. */
import { spawn } from 'node:child_process';

/** A failure with a sentence that says what to do. */
export class SetupError extends Error {}

const KEPT_OUTPUT_CHARS = 200_000;
const NOISE =
  /npm warn EBADENGINE|A complete log of this run|^npm (?:error|ERR!)\s*(?:[{}]|at |(?:code|errno|syscall|address|port|type|path|dest): |$)|^\s+at /;

export class Steps {
  /** @param {{ write(text: string): unknown, isTTY?: boolean }} out */
  constructor(out) {
    this.out = out;
    this.startedAtMs = Date.now();
    this.count = 0;
  }

  /**
   * @template T
   * @param {string} title what is being done, in plain words
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  async run(title, work) {
    const startedAtMs = Date.now();
    this.count += 1;
    this.out.write(`  ${title} …`);
    // Long steps show that they live: seconds on a terminal, a dot every ten in a log.
    const ticker = setInterval(
      () => {
        if (this.out.isTTY) this.out.write(`\r  ${title} … ${wholeSeconds(startedAtMs)} s`);
        else this.out.write('.');
      },
      this.out.isTTY ? 1000 : 10_000,
    );
    try {
      const value = await work();
      const line = `${((Date.now() - startedAtMs) / 1000).toFixed(1)} s`;
      this.out.write(this.out.isTTY ? `\r  ${title} … ${line}\n` : ` ${line}\n`);
      return value;
    } catch (error) {
      this.out.write(` failed after ${wholeSeconds(startedAtMs)} s\n`);
      throw error;
    } finally {
      clearInterval(ticker);
    }
  }

  /** @param {string} text */
  say(text) {
    this.out.write(`  ${text}\n`);
  }

  /** Says how long it took, where there was anything to do. */
  finish() {
    if (this.count === 0) return;
    this.out.write(`  Set up in ${((Date.now() - this.startedAtMs) / 1000).toFixed(1)} s.\n`);
  }
}

/** @param {number} sinceMs */
function wholeSeconds(sinceMs) {
  return Math.round((Date.now() - sinceMs) / 1000);
}

/**
 * Runs a program to its end and keeps what it wrote. Never rejects: a program that can't be started
 * ends with code 127.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv }} [options]
 * @returns {Promise<{ code: number, output: string }>}
 */
export function runProgram(command, args, options = {}) {
  return new Promise((resolve) => {
    let output = '';
    /** @param {unknown} chunk */
    const keep = (chunk) => {
      output = (output + String(chunk)).slice(-KEPT_OUTPUT_CHARS);
    };
    const child = spawn(command, [...args], {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.on('error', (error) => resolve({ code: 127, output: `${output}${error.message}\n` }));
    child.on('close', (code, signal) =>
      resolve({ code: code ?? 128, output: signal ? `${output}ended by ${signal}\n` : output }),
    );
  });
}

/**
 * The last lines of a program's output that say something to a person: no stack, no warnings about
 * newer Nodes, none of the fields that npm prints of an error.
 *
 * @param {string} output
 * @param {number} count
 */
export function lastLines(output, count) {
  return output
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '' && !NOISE.test(line))
    .slice(-count)
    .join('\n');
}
