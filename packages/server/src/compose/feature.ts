import type { Dialect } from '@wheelhouse/machinery';
import type { FeatureGates } from '../flags/feature-gates.ts';
import type { NamedFile } from '../flags/flag-files.ts';
import type { FlagTable, FlagValues } from '../flags/flags.ts';

/** What a feature's settings depend on besides its flags. */
export interface CommandLine {
  readonly dialect: Dialect;
  readonly gates: FeatureGates;
  /** Names of the flags on the command line, for checks that compare flags. */
  readonly specifiedFlags: ReadonlySet<string>;
  /** Adds a warning to the log. */
  warn(message: string): void;
}

/**
 * A part of the server that users configure. `settings.ts` in its folder declares the flags as data
 * and converts them to settings; the other files hold what `server.ts` builds from the settings.
 * `command-line.ts` lists all features.
 */
export interface Feature<
  Flags extends FlagTable,
  Settings extends object,
  /** Flags of other features that the settings depend on. */
  OtherFlags extends FlagTable = Flags,
> {
  readonly flags: Flags;
  /**
   * Returns the feature's part of the configuration. Throws a one-line FlagError for invalid
   * values.
   */
  settings(values: FlagValues<Flags & OtherFlags>, line: CommandLine): Settings;
  /** Files named within the values of flags; flags with `file` need not be listed. */
  files?(values: FlagValues<Flags>): readonly NamedFile[];
}
