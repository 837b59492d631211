/** Facts about a reason of a Status, for the reference page and the type of reasons. */
interface StatusReasonFacts {
  /** HTTP status codes with this reason. */
  readonly codes: readonly number[];
  readonly meaning: string;
  /** The recommended reaction of a client. */
  readonly remedy: string;
}

/** Every reason of a Status (API-10). */
export const statusReasons = {
  BadRequest: {
    codes: [400],
    meaning: 'The server cannot read the request: its body, a parameter, or a selector.',
    remedy: 'Fix the request; the message names the problem.',
  },
  Unauthorized: {
    codes: [401],
    meaning: 'The credential is missing, unknown, or expired.',
    remedy: 'Send a valid token or client certificate.',
  },
  Forbidden: {
    codes: [403],
    meaning: 'Authorization or an admission plugin rejects the request.',
    remedy:
      'Grant the verb on the resource, which the message names, or satisfy the named admission plugin.',
  },
  NotFound: {
    codes: [404],
    meaning: 'There is no object with this name, or no resource at this path.',
    remedy: 'Check the name, the namespace, and the group and version.',
  },
  MethodNotAllowed: {
    codes: [405],
    meaning: 'The resource exists but does not support the method.',
    remedy: 'Use a verb that discovery lists for the resource.',
  },
  NotAcceptable: {
    codes: [406],
    meaning: 'The server cannot respond in any media type of the Accept header.',
    remedy: 'Accept `application/json`.',
  },
  AlreadyExists: {
    codes: [409],
    meaning: 'An object with this name exists, possibly one that is being deleted.',
    remedy:
      'Choose another name, or wait until the object is gone. With `generateName`, repeat the request.',
  },
  Conflict: {
    codes: [409],
    meaning:
      'The object has changed since the client read it, a precondition does not hold, or an apply touches fields of other managers.',
    remedy: 'Read the object again and repeat the change; an apply may use `force=true`.',
  },
  Gone: {
    codes: [410],
    meaning:
      'The resource is no longer available. The server itself sends Expired; webhooks and aggregated servers may send this.',
    remedy: 'List again.',
  },
  Expired: {
    codes: [410],
    meaning: 'The history that a watch or a continue token refers to has been compacted.',
    remedy: 'List again without resourceVersion, then watch from the version of the list.',
  },
  RequestEntityTooLarge: {
    codes: [413],
    meaning: 'The body has more bytes or more values than the server accepts.',
    remedy: 'Send a smaller body, or raise `--max-request-body-bytes`.',
  },
  UnsupportedMediaType: {
    codes: [415],
    meaning: 'The server cannot read the Content-Type of the body.',
    remedy: 'Use one of the types that the message lists.',
  },
  Invalid: {
    codes: [422],
    meaning:
      'The object violates rules of its kind; `details.causes` has one entry for each field.',
    remedy: 'Fix the named fields.',
  },
  TooManyRequests: {
    codes: [429],
    meaning:
      'Flow control, an event rate limit, or a disruption budget temporarily rejects the request.',
    remedy: 'Wait `Retry-After` seconds and repeat.',
  },
  InternalError: {
    codes: [500],
    meaning:
      'The server failed, or a webhook that it depends on. The log has the cause, with the Audit-Id of the response.',
    remedy: 'Check the log. Repeating the request may help if a webhook was unreachable.',
  },
  StorageReadError: {
    codes: [500],
    meaning: 'A stored object is damaged or cannot be decrypted.',
    remedy:
      'Restore a backup, or delete the object with `ignoreStoreReadErrorWithClusterBreakingPotential=true`, which needs the gate AllowUnsafeMalformedObjectDeletion.',
  },
  ServerTimeout: {
    codes: [500],
    meaning:
      'An operation did not finish in time. The server itself sends Timeout; webhooks and aggregated servers may send this.',
    remedy: 'Repeat the request after a pause.',
  },
  ServiceUnavailable: {
    codes: [503],
    meaning:
      'The store, an aggregated server, or the server itself while it starts or stops cannot serve the request.',
    remedy: 'Repeat the request after a pause, or after `Retry-After` if it is given.',
  },
  Timeout: {
    codes: [408, 504],
    meaning:
      'The request did not finish in time, its body arrived too slowly (408), or the server has not reached the requested resourceVersion. A write that times out may still be stored.',
    remedy: 'Read the object before repeating a write.',
  },
} as const satisfies Readonly<Record<string, StatusReasonFacts>>;

/** The reason of a Status. */
export type StatusReason = keyof typeof statusReasons;

/** Every reason of a field error, as in the causes of a Status with reason Invalid. */
export const fieldErrorTypes = {
  FieldValueRequired: 'A required value is missing.',
  FieldValueInvalid: 'The value has the right type but violates a rule.',
  FieldValueNotSupported: 'The value is not one of the supported values, which the message lists.',
  FieldValueDuplicate: 'The value occurs twice in a list whose values must be unique.',
  FieldValueForbidden: 'The field must not be set here, or must not change.',
  FieldValueTooLong: 'The value has more bytes than allowed.',
  FieldValueTooMany: 'The list has more items than allowed.',
  FieldValueNotFound: 'The value refers to something that does not exist.',
  FieldValueTypeInvalid: 'The value has the wrong type.',
  InternalError: 'A rule could not be evaluated.',
} as const;

/** The reason of a field error. */
export type FieldErrorType = keyof typeof fieldErrorTypes;
