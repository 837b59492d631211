import type { Dialect } from '@wheelhouse/machinery';
import type { Strategy, VersionDef } from '../resource-def.ts';
import type { Life } from '../rules/life.ts';

/**
 * A version of a kind that an earlier release served. Absent members are those of the stored
 * version, because most older versions differ only in their name.
 */
export interface OlderVersion
  extends Pick<
    VersionDef,
    'toStorage' | 'fromStorage' | 'columns' | 'isOnByDefault' | 'defaultPropagation'
  > {
  /**
   * Directory of the group's facts: `extensions`, `apps`. If the group is not the kind's own, the
   * version shows the same objects.
   */
  readonly facts: string;
  readonly version: string;
  /** Name of the type, if it differs from the kind. */
  readonly type?: string;
  /** The version's life, if the type's facts do not state it. */
  readonly life?: Life;
  readonly schema?: () => VersionDef['schema'];
  /** Fills in this version's own defaults in place, before those of the stored version. */
  readonly defaults?: VersionDef['defaults'];
  /** `alone`: the stored version's defaults do not apply. */
  readonly defaulting?: 'alone';
  /** Subresources that only this version has, and the kinds that clients POST to them. */
  readonly operations?: readonly { readonly name: string; readonly kind: string }[];
  /** Returns the rules that differ in this version, given those of the kind. */
  readonly rules?: (strategy: Strategy) => Partial<Strategy>;
}

/** The older versions of a kind, which is named by its facts' directory and its kind. */
export interface OlderKind {
  readonly facts: string;
  readonly kind: string;
  readonly older: readonly OlderVersion[];
}

/** One group's part of the table. */
export type OlderKinds = (dialect: Dialect) => readonly OlderKind[];
