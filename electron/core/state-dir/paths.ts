import { isAbsolute, join, resolve } from 'node:path';

/** Where every file of design §5.5 lies. Absolute paths. */
export interface LandlordPaths {
  readonly configFile: string;
  readonly configDir: string;
  /** Published beside the config for editors. */
  readonly schemaFile: string;
  readonly stateDir: string;
  readonly databaseFile: string;
  readonly tokenFile: string;
  /** The ledger's text protocol (design §5.4). */
  readonly socketFile: string;
  readonly lockFile: string;
  /** One file for each server that is ours to run. */
  readonly logDir: string;
  /** Conversations of models that are away. */
  readonly parkedDir: string;
  /** Who holds the lock: `RuntimeRecord` as JSON. */
  readonly runtimeFile: string;
  /** The last config text that was accepted. */
  readonly lastGoodConfigFile: string;
}

export interface PathInputs {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly cwd: string;
  /** `--state-dir`: moves every file but the config. */
  readonly stateDir?: string | undefined;
  /** `--config`. */
  readonly config?: string | undefined;
}

/**
 * XDG variables count only when absolute: the base directory specification says that relative ones
 * are to be ignored.
 */
export function resolvePaths(inputs: PathInputs): LandlordPaths {
  const configHome = absoluteOr(inputs.env.XDG_CONFIG_HOME, join(inputs.home, '.config'));
  const stateHome = absoluteOr(inputs.env.XDG_STATE_HOME, join(inputs.home, '.local', 'state'));
  const configFile = chosen(inputs.config)
    ? resolve(inputs.cwd, inputs.config)
    : join(configHome, 'vram-landlord', 'config.yaml');
  const stateDir = chosen(inputs.stateDir)
    ? resolve(inputs.cwd, inputs.stateDir)
    : join(stateHome, 'vram-landlord');
  const configDir = resolve(configFile, '..');
  return {
    configFile,
    configDir,
    schemaFile: join(configDir, 'config.schema.json'),
    stateDir,
    databaseFile: join(stateDir, 'landlord.db'),
    tokenFile: join(stateDir, 'token'),
    socketFile: join(stateDir, 'landlord.sock'),
    logDir: join(stateDir, 'logs'),
    parkedDir: join(stateDir, 'parked'),
    lockFile: join(stateDir, 'runtime.lock'),
    runtimeFile: join(stateDir, 'runtime.json'),
    lastGoodConfigFile: join(stateDir, 'config.last-good.yaml'),
  };
}

function absoluteOr(value: string | undefined, fallback: string): string {
  return value !== undefined && isAbsolute(value) ? value : fallback;
}

function chosen(value: string | undefined): value is string {
  return value !== undefined && value !== '';
}
