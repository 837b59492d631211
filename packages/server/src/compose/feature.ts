import type { Dialect } from '@wheelhouse/machinery';
import type { FeatureGates } from './apis/feature-gates.ts';
import type { NamedFile } from './flags/flag-files.ts';
import type { FlagTable, FlagValues } from './flags/flags.ts';

/** What the settings of a feature depend on besides the values of flags. */
export interface CommandLine {
  readonly dialect: Dialect;
  readonly gates: FeatureGates;
  /** Names of the flags on the command line, for checks that compare flags. */
  readonly specifiedFlags: ReadonlySet<string>;
  /** Adds a line for the log. */
  warn(message: string): void;
}

/**
 * A part of the server that users configure. Its folder holds all of it: `settings.ts` declares the
 * flags as data and what they become; the other files hold what `server.ts` builds from the
 * settings. `command-line.ts` lists all features.
 */
export interface Feature<
  Flags extends FlagTable,
  Settings extends object,
  /** Flags of other features that the settings depend on. */
  OtherFlags extends FlagTable = Flags,
> {
  readonly flags: Flags;
  /** The feature's part of the configuration. Throws FlagError, one line, for what is wrong. */
  settings(values: FlagValues<Flags & OtherFlags>, line: CommandLine): Settings;
  /** Files that are named within the values of flags; those of flags with `file` need no mention. */
  files?(values: FlagValues<Flags>): readonly NamedFile[];
}
