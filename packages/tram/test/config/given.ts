/** Options as programs in plain JavaScript may pass them: types do not protect there. */
import { resolve } from 'node:path';
import { type ClusterConfig, resolveConfig } from '../../src/config/config.js';
import { ConfigError } from '../../src/config/mistakes.js';
import type { ClusterOptions } from '../../src/config/options.js';

export const SALT = { check: 12345, tail: 67890 };
export const DIRECTORY = resolve('/data');

export function resolveAnything(options: unknown): ClusterConfig {
  return resolveConfig(options as ClusterOptions, SALT, DIRECTORY);
}

/** The mistake in options that must have one. */
export function errorOf(options: unknown): ConfigError {
  try {
    resolveAnything(options);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('these options were accepted');
}
