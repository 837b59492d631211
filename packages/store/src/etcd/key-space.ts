/** Between the store's keys and etcd's: one leading part stands for another. */
export interface KeySpace {
  /** The key in etcd. Throws RangeError for one that has not the leading part. */
  toEtcd(key: string): string;
  /** The store's key; undefined for a key that is not ours. */
  fromEtcd(key: string): string | undefined;
}

/** @param options.ours how all keys of the store begin @param options.theirs the same in etcd */
export function createKeySpace(options: {
  readonly ours: string;
  readonly theirs: string;
}): KeySpace {
  const { ours, theirs } = options;
  return {
    toEtcd(key) {
      if (!key.startsWith(ours)) throw new RangeError(`the key ${key} is outside ${ours}`);
      return theirs + key.slice(ours.length);
    },
    fromEtcd: (key) => (key.startsWith(theirs) ? ours + key.slice(theirs.length) : undefined),
  };
}
