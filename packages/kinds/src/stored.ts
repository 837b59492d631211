import type { ObjectMeta } from '@wheelhouse/machinery';

/**
 * An object of a built-in type (`Stored<Deployment>`) as its decoder returns it and as strategies
 * change it. The decoder has checked the type of every member that is present. Every member may be
 * absent, because an object under construction lacks some; an object or list that is always
 * encoded may be null. Strings of enumerated types may have any value until validation. Kinds have
 * apiVersion, kind, and metadata.
 */
export type Stored<T> = T extends readonly (infer Item)[]
  ? Stored<Item>[]
  : T extends object
    ? string extends keyof T
      ? { [name: string]: Stored<T[string & keyof T]> }
      : T extends { metadata: object; kind: string; apiVersion: string }
        ? StoredObject<Omit<T, keyof Envelope>> & Envelope
        : StoredObject<T>
    : T extends string
      ? string
      : T;

type StoredObject<T> = { [K in keyof T]?: StoredMember<T[K]> };

type StoredMember<M> = undefined extends M
  ? Stored<M> | undefined
  : M extends object
    ? Stored<M> | null | undefined
    : Stored<M> | undefined;

/** The members of every kind. */
type Envelope = { apiVersion: string; kind: string; metadata: ObjectMeta };
