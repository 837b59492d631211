/** The API server as a library. */

export * from './library.ts';
