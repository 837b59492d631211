import type { Dialect } from '@wheelhouse/machinery';
import type { Strategy, VersionDef } from '../resource-def.ts';
import type { Life } from '../rules/life.ts';

/**
 * A version of a kind that some earlier release served. What is not said is as in the version that
 * is stored: older versions mostly differ in their name alone.
 */
export interface OlderVersion
  extends Pick<
    VersionDef,
    'toStorage' | 'fromStorage' | 'columns' | 'isOnByDefault' | 'defaultPropagation'
  > {
  /**
   * Directory of the group's facts: `extensions`, `apps`. Another group than the kind's own is one
   * more view of the same objects.
   */
  readonly facts: string;
  readonly version: string;
  /** Name of the type, when it is not the kind in this version. */
  readonly type?: string;
  /** What is known of its life beyond what the type says. */
  readonly life?: Life;
  readonly schema?: () => VersionDef['schema'];
  /** Fills what this version defaults in another way, before the stored version's own defaults. */
  readonly defaults?: VersionDef['defaults'];
  /** `alone`: those of the stored version do not fit this one's form. */
  readonly defaulting?: 'alone';
  /** Sub-resources that this version alone has, with what is posted to them. */
  readonly operations?: readonly { readonly name: string; readonly kind: string }[];
  /** Rules that differ for requests of this version; gets those of the kind. */
  readonly rules?: (strategy: Strategy) => Partial<Strategy>;
}

/** The older versions of one kind, named by its facts' directory and its kind. */
export interface OlderKind {
  readonly facts: string;
  readonly kind: string;
  readonly older: readonly OlderVersion[];
}

/** A group's part of the table. */
export type OlderKinds = (dialect: Dialect) => readonly OlderKind[];
