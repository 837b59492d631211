import type { ObjectMeta } from '@wheelhouse/machinery';

/**
 * An object of a built-in type (`Stored<Deployment>`) as its decoder leaves it and as strategies
 * change it: the schema's decoder has checked the type of every member that is there. Every member
 * may be absent, since an object that is being made lacks some; an object or a list that is always
 * written may be null. A text may be any, because validation has yet to judge it. Kinds have
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

/** What `ApiObject` has of every kind. */
type Envelope = { apiVersion: string; kind: string; metadata: ObjectMeta };
