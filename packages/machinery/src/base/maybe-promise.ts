/**
 * A value now, or a promise of it. Hot paths return the value itself when they have it, since an
 * `await` on every read costs more than the read.
 */
export type MaybePromise<T> = T | Promise<T>;
