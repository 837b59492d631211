import {
  ApiError,
  bodyErrorText,
  ConnectionError,
  CredentialError,
  goNetworkError,
  KubeconfigError,
  LostResponseError,
} from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import { CliError, type CliIo, CommandExit, CommandLineError, PlainCliError } from './io.ts';
import { nameOf, namespaceOf } from './objects.ts';

/** A failure and the action that failed, such as `error when creating "f.yaml"`. */
export class ContextError extends Error {
  constructor(context: string, cause: unknown) {
    super(context, { cause });
    this.name = 'ContextError';
  }
}

/** The server does not serve an object's kind. */
export class NoMatchError extends PlainCliError {
  readonly #unserved: {
    readonly object: JsonObject;
    readonly apiVersion: string;
    readonly kind: string;
  };

  constructor(
    type: { readonly object: JsonObject; readonly apiVersion: string; readonly kind: string },
    source?: string,
  ) {
    const { object, apiVersion, kind } = type;
    const from = source === undefined ? '' : ` from ${JSON.stringify(source)}`;
    super(
      `resource mapping not found for name: ${JSON.stringify(nameOf(object))} namespace: ` +
        `${JSON.stringify(namespaceOf(object))}${from}: no matches for kind ` +
        `${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}\n` +
        'ensure CRDs are installed first',
    );
    this.#unserved = type;
  }

  /** Returns the error with the name of the object's file in its message. */
  withSource(source: string): NoMatchError {
    return new NoMatchError(this.#unserved, source);
  }
}

/** The server serves no resource of a name, group, and version. Its message has no prefix. */
export class NoResourceError extends CliError {
  constructor(wanted: {
    readonly resource: string;
    readonly group?: string;
    readonly version?: string;
  }) {
    const parts = (['group', 'version'] as const).flatMap((part) =>
      wanted[part] ? [`${part} ${JSON.stringify(wanted[part])}`] : [],
    );
    const where = parts.length === 0 ? '' : ` in ${parts.join(' and ')}`;
    super(`the server doesn't have a resource type ${JSON.stringify(wanted.resource)}${where}`);
  }
}

/** Returns the text of a failure, in kubectl's wording, and the exit code. */
export function describeError(error: unknown): { text: string; exitCode: number } {
  const exitCode = error instanceof CliError ? error.exitCode : 1;
  const text = fullText(error, '');
  return { text: text.endsWith('\n') ? text : `${text}\n`, exitCode };
}

/**
 * Visits each item in order. Collects failures in `failures` and continues, except after an
 * interrupt. Resolves with `failures`.
 */
export async function visitEach<Item>(
  io: CliIo,
  items: Iterable<Item>,
  visit: (item: Item) => Promise<void> | void,
  failures: unknown[] = [],
): Promise<unknown[]> {
  for (const item of items) {
    try {
      await visit(item);
    } catch (error) {
      if (io.signal.aborted) throw error;
      failures.push(error);
    }
  }
  return failures;
}

/** Throws a single failure as it is, and several as an AggregateError. */
export function throwTogether(failures: readonly unknown[]): void {
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures);
}

/** Prints failures, if any. Returns the exit code. */
export function reportFailures(io: CliIo, failures: readonly unknown[]): number {
  if (failures.length === 0) return 0;
  io.err(describeErrors(failures));
  return 1;
}

/** The full text of a single failure, or one shorter line for each of several. */
function describeErrors(errors: readonly unknown[]): string {
  if (errors.length === 1) return describeError(errors[0]).text;
  return errors.map((error) => `${lineText(error, '')}\n`).join('');
}

function lineText(error: unknown, context: string): string {
  if (error instanceof PlainCliError) return error.message;
  if (error instanceof ContextError) return lineText(error.cause, `${context}${error.message}: `);
  if (error instanceof ApiError && error.code !== 401) return serverText(error, context);
  if (error instanceof CliError) return `${context}${error.message}`;
  return fullText(error, context);
}

/** Returns the innermost cause of a failure. */
export function rootOf(error: unknown): unknown {
  return error instanceof ContextError ? rootOf(error.cause) : error;
}

function fullText(error: unknown, context: string): string {
  if (error instanceof CommandExit || error instanceof NoResourceError) return error.message;
  if (error instanceof CommandLineError) return `Error: ${error.message}`;
  if (error instanceof PlainCliError) return `error: ${error.message}`;
  if (error instanceof AggregateError) {
    return error.errors.map((inner) => lineText(inner, '')).join('\n');
  }
  if (error instanceof ContextError) return fullText(error.cause, `${context}${error.message}: `);
  if (error instanceof ApiError) return apiErrorText(error, context);
  if (error instanceof LostResponseError) return `error: ${context}${error.message}`;
  if (error instanceof ConnectionError) return connectionText(error);
  if (error instanceof CredentialError) {
    return `Unable to connect to the server: getting credentials: ${error.message}`;
  }
  if (error instanceof KubeconfigError && error.errors.length > 0)
    return configurationErrorsText(error.errors);
  if (error instanceof CliError || error instanceof KubeconfigError) {
    const text = `${context}${error.message}`;
    return text.startsWith('error: ') ? text : `error: ${text}`;
  }
  if (error instanceof Error && error.name === 'TimeoutError') {
    return `Unable to connect to the server: ${timeoutText}`;
  }
  return `error: ${context}${bodyErrorText(error)}`;
}

/** Go's wording for a response that does not arrive in time. */
const timeoutText = 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)';

/** The text of the errors in a kubeconfig: a list, unless there is only one. */
function configurationErrorsText(errors: readonly string[]): string {
  const [only = ''] = errors;
  if (errors.length > 1) {
    return `Error in configuration: \n${errors.map((error) => `* ${error}`).join('\n')}`;
  }
  return `${only.startsWith('context was') ? 'Error in configuration: ' : 'error: '}${only}`;
}

function apiErrorText(error: ApiError, context: string): string {
  if (error.reason === 'Unauthorized' || error.code === 401) {
    return 'error: You must be logged in to the server (Unauthorized)';
  }
  if (error.reason === 'Invalid') return invalidText(error);
  return serverText(error, context);
}

function serverText(error: ApiError, context: string): string {
  const reason = error.reason === '' ? '' : ` (${error.reason})`;
  return `Error from server${reason}: ${context}${error.message}`;
}

function invalidText(error: ApiError): string {
  const { kind = '', name = '', causes = [] } = error.details ?? {};
  const isNamed = kind !== '' || name !== '';
  const head = isNamed
    ? `The ${kind} ${JSON.stringify(name)} is invalid`
    : 'The request is invalid';
  const messages = causes.map(({ field = '', message = '' }) =>
    field === '' ? message : `${field}: ${message}`,
  );
  const lines = [...new Set(messages)];
  if (lines.length === 0)
    return isNamed || error.message === '' ? head : `${head}: ${error.message}`;
  if (lines.length === 1) return `${head}: ${lines[0]}`;
  return `${head}: \n${lines.map((line) => `* ${line}`).join('\n')}`;
}

function connectionText(error: ConnectionError): string {
  if (error.code === 'ECONNREFUSED') {
    return (
      `The connection to the server ${error.host} was refused - ` +
      'did you specify the right host or port?'
    );
  }
  // Only errors of the network have codes.
  const why = error.code === '' ? error.message : goNetworkError(error);
  return `Unable to connect to the server: ${why}`;
}
