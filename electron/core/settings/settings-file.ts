import { readFile, realpath, stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { fail, messageOf, ok, type Result } from '../../../shared/errors.ts';
import type { NewEvent } from '../../../shared/events.ts';
import type { Settings } from '../../../shared/settings.ts';
import { makeFolders } from '../make-folders.ts';
import { isErrno, replaceFile } from '../state-dir/atomic-file.ts';
import type { LandlordPaths } from '../state-dir/paths.ts';
import type { ConfigReader } from './config-reader.ts';
import { cautiousDefaults, defaults } from './defaults.ts';
import { FileWatch, fileSignature, MISSING } from './file-watch.ts';
import { keepRejected } from './rejected-copies.ts';
import { type ConfigRejection, rejection } from './rejection.ts';

/** The kernel tells of a file itself; this is for what it does not tell of, as the target of a link. */
const POLL_MS = 5_000;

/**
 * Where the settings in force come from.
 *
 *   defaults ⇄ file ─► kept       the file was good, and what stands there now is not
 *      start ─► last-good         the file is bad; the last good one of an earlier run is in force
 *      start ─► cautious          the file is bad and none was ever good: guards only observe
 */
export type SettingsSource = 'defaults' | 'file' | 'kept' | 'last-good' | 'cautious';

export interface SettingsStatus {
  readonly settings: Settings;
  readonly source: SettingsSource;
  /** Why the file that stands there is not in force; null when it is. */
  readonly rejection: ConfigRejection | null;
  /** Where a copy of the rejected text is kept. */
  readonly rejectedCopy: string | null;
}

export interface SettingsFileOptions {
  readonly paths: Pick<LandlordPaths, 'configFile' | 'configDir' | 'schemaFile' | 'lastGoodConfigFile'>;
  /** What `~/` in the config stands for. */
  readonly home: string | null;
  readonly reader: ConfigReader;
  readonly now: () => number;
  /** Other settings are in force from now on. Not called for `start`. */
  readonly onSettings: (settings: Settings) => void;
  /** `config_loaded` and `config_rejected`, for the log. */
  readonly onEvent: (event: NewEvent) => void;
  /** How often the file is looked at when the kernel tells nothing; default 5 s. */
  readonly pollMs?: number;
  /** How long the file must stay the same before it is read: editors write in steps. */
  readonly settleMs?: number;
}

/** An empty or missing file must stay so this many times longer: editors pass through both. */
const VOID_PATIENCE = 10;

/** A file that never rests is read as it is at last, rather than never. */
const SETTLE_ROUNDS = 25;

/** Many times a config that is taken: that one is told with its own sentence, this one is not even read. */
const MOST_BYTES = 8 * 1024 * 1024;

export class SettingsFile {
  readonly #options: SettingsFileOptions;
  #status: SettingsStatus = { settings: defaults(), source: 'defaults', rejection: null, rejectedCopy: null };
  #handled = '';
  #watch: FileWatch | null = null;
  #work: Promise<void> = Promise.resolve();
  #lookQueued = false;
  #schemaText: Promise<string> | null = null;
  readonly #stopping = new AbortController();

  constructor(options: SettingsFileOptions) {
    this.#options = options;
  }

  status(): SettingsStatus {
    return this.#status;
  }

  /** Reads the file, or falls back as `SettingsSource` draws; then watches it. Does not fail. */
  async start(): Promise<SettingsStatus> {
    const { paths } = this.#options;
    try {
      makeFolders(paths.configDir, 0o700);
    } catch {
      // The file is found missing, and its writing says why it can't be written.
    }
    await this.#enqueue(async () => {
      const signature = await fileSignature(paths.configFile);
      await this.#take(signature, true);
    });
    this.#watch = new FileWatch(paths.configFile, this.#options.pollMs ?? POLL_MS, () => this.#look());
    void this.#publishSchema();
    return this.#status;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#watch?.[Symbol.dispose]();
    this.#watch = null;
    await this.#work;
  }

  /**
   * Sets one value in the file and keeps everything else of it, comments too. The changed text is
   * checked first; what is not right is not written. `undefined` removes the key.
   *
   * Errors: `bad_input`, `config_rejected`, `storage_failed`.
   */
  async write(path: readonly (string | number)[], value: unknown): Promise<Result<void>> {
    const { settingsToYamlPatch } = await import('./yaml-patch.ts');
    return this.edit((text) => settingsToYamlPatch(text ?? '', path, value));
  }

  /** What stands in the file now; null: there is none. Errors: `storage_failed`. */
  text(): Promise<Result<string | null>> {
    return this.#read();
  }

  /** The JSON Schema of a config, as text. */
  schemaText(): Promise<string> {
    this.#schemaText ??= this.#options.reader.schemaText();
    return this.#schemaText;
  }

  /** Whether this text would be taken. Errors: `config_rejected`, with each problem's line. */
  check(text: string): Promise<Result<Settings, ConfigRejection>> {
    const { paths, reader, home } = this.#options;
    return reader.parse(text, paths.configFile, home);
  }

  get file(): string {
    return this.#options.paths.configFile;
  }

  /**
   * Writes what `make` turns the file's present text into, once that has been checked. Nothing else
   * reads or writes it here in between. Errors: those of `make`, `config_rejected`, `storage_failed`.
   */
  async edit(make: (text: string | null) => Result<string>): Promise<Result<void>> {
    let result: Result<void> = fail(
      'cancelled',
      'The settings are being closed; try again after the restart.',
    );
    await this.#enqueue(async () => {
      result = await this.#edit(make);
    });
    return result;
  }

  async #edit(make: (text: string | null) => Result<string>): Promise<Result<void>> {
    const { paths } = this.#options;
    const read = await this.#read();
    if (!read.ok) return read;
    const patched = make(read.value);
    if (!patched.ok) return patched;
    const parsed = await this.check(patched.value);
    if (!parsed.ok) return parsed;
    try {
      // Through a symbolic link, not over it: people keep their config elsewhere and link it here.
      const target = await realpath(paths.configFile).catch(() => paths.configFile);
      const mode = await stat(target).then(
        (found) => found.mode & 0o777,
        () => 0o600,
      );
      await replaceFile(target, patched.value, mode);
    } catch (error) {
      return fail(
        'storage_failed',
        `${paths.configFile} can't be written (${messageOf(error)}); make it writable.`,
      );
    }
    await this.#take(await fileSignature(paths.configFile), false);
    return ok(undefined);
  }

  #look(): void {
    if (this.#lookQueued) return;
    this.#lookQueued = true;
    void this.#enqueue(async () => {
      this.#lookQueued = false;
      const signature = await this.#settled();
      if (signature !== null) await this.#take(signature, false);
    });
  }

  /** One thing at a time; a failure here must not end the watching. */
  #enqueue(work: () => Promise<void>): Promise<void> {
    this.#work = this.#work.then(async () => {
      if (this.#stopping.signal.aborted) return;
      try {
        await work();
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        this.#reject(rejection(this.#options.paths.configFile, [problem(messageOf(error))]), null, false);
      }
    });
    return this.#work;
  }

  /** The file's signature once it has stopped changing; null when it is the one already dealt with. */
  async #settled(): Promise<string | null> {
    const { configFile } = this.#options.paths;
    const settleMs = this.#options.settleMs ?? 200;
    let signature = await fileSignature(configFile);
    for (let round = 0; signature !== this.#handled; round += 1) {
      const isVoid = signature === MISSING || (await stat(configFile).catch(() => null))?.size === 0;
      await delay(isVoid ? settleMs * VOID_PATIENCE : settleMs, undefined, { signal: this.#stopping.signal });
      const after = await fileSignature(configFile);
      if (after === signature || round >= SETTLE_ROUNDS) return after;
      signature = after;
    }
    return null;
  }

  async #take(signature: string, starting: boolean): Promise<void> {
    const { paths, reader, home } = this.#options;
    const read = await this.#read();
    this.#handled = signature;
    if (!read.ok) {
      await this.#refuse(rejection(paths.configFile, [problem(read.error.message)]), null, starting);
      return;
    }
    if (read.value === null) {
      this.#accept(defaults(), 'defaults', starting);
      return;
    }
    const parsed = await reader.parse(read.value, paths.configFile, home);
    if (!parsed.ok) {
      await this.#refuse(parsed.error, read.value, starting);
      return;
    }
    this.#accept(parsed.value, 'file', starting);
    await this.#rememberGood(read.value);
  }

  /** null: there is no such file. Errors: `storage_failed`. */
  async #read(): Promise<Result<string | null>> {
    const { configFile } = this.#options.paths;
    try {
      const found = await stat(configFile);
      // A pipe that nobody writes to is never read to its end.
      if (!found.isFile()) return fail('storage_failed', 'it is no file; write the config into one');
      if (found.size > MOST_BYTES)
        return fail('storage_failed', 'it is larger than any config; check the path');
      return ok(await readFile(configFile, 'utf8'));
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return ok(null);
      const code = error instanceof Error && 'code' in error ? String(error.code) : messageOf(error);
      return fail('storage_failed', `it can't be read (${code}); make it a file that this user may read`);
    }
  }

  #accept(settings: Settings, source: 'defaults' | 'file', starting: boolean): void {
    const before = this.#status;
    this.#status = { settings, source, rejection: null, rejectedCopy: null };
    const same = JSON.stringify(before.settings) === JSON.stringify(settings);
    if (starting ? source === 'defaults' : same && before.rejection === null && before.source === source)
      return;
    const { configFile } = this.#options.paths;
    this.#options.onEvent({
      kind: 'config_loaded',
      reason:
        source === 'file'
          ? `The settings of ${configFile} are in force.`
          : `${configFile} is gone, so the built-in settings are in force.`,
      numbers: {},
    });
    if (!starting && !same) this.#options.onSettings(settings);
  }

  async #refuse(why: ConfigRejection, text: string | null, starting: boolean): Promise<void> {
    const { paths, now } = this.#options;
    const copy = text === null ? null : await keepRejected(paths.configFile, text, now());
    if (starting) {
      const lastGood = await this.#lastGood();
      this.#status = {
        ...this.#status,
        settings: lastGood ?? cautiousDefaults(),
        source: lastGood === null ? 'cautious' : 'last-good',
      };
    }
    this.#reject(why, copy, starting);
  }

  #reject(why: ConfigRejection, copy: Result<string> | null, starting: boolean): void {
    const source = starting || this.#status.source !== 'file' ? this.#status.source : 'kept';
    this.#status = {
      settings: this.#status.settings,
      source,
      rejection: why,
      rejectedCopy: copy?.ok ? copy.value : null,
    };
    const [first, ...more] = why.message.split('\n');
    const kept =
      copy === null ? '' : copy.ok ? ` A copy is kept as ${copy.value}.` : ` ${copy.error.message}`;
    const count = more.length === 0 ? '' : ` (and ${why.problems.length - 1} more)`;
    const said = `${first}${count}`;
    this.#options.onEvent({
      kind: 'config_rejected',
      reason: `The config is not used, ${IN_FORCE[source]}: ${said}${said.endsWith('?') ? '' : '.'}${kept}`,
      numbers: {
        problems: why.problems.length,
        line: why.problems[0]?.line ?? null,
        column: why.problems[0]?.column ?? null,
      },
    });
  }

  async #lastGood(): Promise<Settings | null> {
    const { paths, reader, home } = this.#options;
    const text = await readFile(paths.lastGoodConfigFile, 'utf8').catch(() => null);
    if (text === null) return null;
    const parsed = await reader.parse(text, paths.lastGoodConfigFile, home);
    return parsed.ok ? parsed.value : null;
  }

  async #rememberGood(text: string): Promise<void> {
    const { lastGoodConfigFile } = this.#options.paths;
    const known = await readFile(lastGoodConfigFile, 'utf8').catch(() => null);
    // Without it a later start with a bad config only observes; worth no event of its own.
    if (known !== text) await replaceFile(lastGoodConfigFile, text, 0o600).catch(() => undefined);
  }

  /** Written only when different, so that a config folder under version control stays clean. */
  async #publishSchema(): Promise<void> {
    const { schemaFile } = this.#options.paths;
    try {
      const schema = await this.#options.reader.schemaText();
      const known = await readFile(schemaFile, 'utf8').catch(() => null);
      if (known !== schema && !this.#stopping.signal.aborted) await replaceFile(schemaFile, schema, 0o644);
    } catch {
      // An editor's help only; a folder that can't be written is told where it matters.
    }
  }
}

/** As a clause, where the file that stands there is not. */
export const IN_FORCE: Readonly<Record<SettingsSource, string>> = {
  file: 'the settings of before stay in force',
  kept: 'the settings of before stay in force',
  defaults: 'the built-in settings stay in force',
  'last-good': 'the last good settings are in force',
  cautious: 'so the built-in settings are in force and the guards only observe',
};

function problem(message: string) {
  return { line: 1, column: 1, key: '', message };
}
