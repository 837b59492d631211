/** Encoding and decoding: JSON, YAML, protobuf, CBOR, and X.509; and content negotiation. */

export { CborError, itemEnd } from './cbor/cursor.ts';
export {
  decodeCbor,
  decodeCborAs,
  decodeCborMap,
  decodeStoredCborSteps,
} from './cbor/decode.ts';
export { diagnoseCbor } from './cbor/diagnose.ts';
export { cborListPieces, encodeCbor, encodeCborSteps, isSelfDescribedCbor } from './cbor/encode.ts';
export {
  ConfigurationError,
  type ConfigurationFormat,
  decodeConfiguration,
  listType,
  optional,
  structType,
  textType,
  truthType,
} from './configuration.ts';
export {
  bodyValuesMax,
  checkValuesSteps,
  JsonError,
  objectMembersMax,
  TooManyValues,
  YamlError,
  yamlBodyLimits,
} from './decode-limits.ts';
export { indentedPieces } from './indent-json.ts';
export {
  answerLimits,
  type DecodedJson,
  decodeJson,
  decodeJsonInSlices,
  decodeJsonSteps,
  encodeJson,
  encodeJsonBriefly,
  encodeJsonSteps,
  encodeTextSteps,
  type JsonLimits,
  jsonText,
  parseAhead,
  parseWrittenJson,
  parseWrittenText,
} from './json.ts';
export {
  memberPlaces,
  parseExactJson,
  type SpelledJson,
  spelledJsonSteps,
  syntaxErrorOf,
  withSpellings,
} from './json-exact.ts';
export { loadYaml } from './lazy.ts';
export {
  contentMediaType,
  covers,
  type EncodingDescriptor,
  type MediaRange,
  parseAccept,
} from './negotiation.ts';
export {
  decodeMessage,
  decodeMessageSteps,
  type EnvelopeType,
  encodeEnvelope,
  encodeEnvelopeSteps,
  encodeMessage,
  encodeMessageSteps,
  isEnvelope,
  itemFieldBytes,
  type ListSeal,
  openEnvelope,
  seal,
  sealEmptyList,
  sealedListPieces,
  usualListFields,
  watchFrame,
} from './protobuf/envelope.ts';
export {
  ProtobufError,
  WireReader,
  WireWriter,
  wireBytes,
  wireFixed64,
  wireVarint,
} from './protobuf/wire.ts';
export { decodeReviewAnswer, reviewStatusReader } from './review-answer.ts';
export {
  attributeOids,
  type RequestParts,
  readCertificate,
  readRequest,
  type Subject,
} from './x509/certificate.ts';
export {
  bundleCertificates,
  type Certificate,
  CertificateError,
  certificatesIn,
  indexRoots,
  parseCertificate,
  parseChain,
  type TrustedRoots,
  verifyChain,
} from './x509/chain.ts';
export { childrenOf, type DerElement, DerError, oidText } from './x509/der.ts';
export type { AlternativeName } from './x509/name-constraints.ts';
export {
  onlyPemBlock,
  type PemBlock,
  pemBlocks,
  pemBytes,
  pemPieces,
  pemText,
} from './x509/pem.ts';
export { decodeYaml } from './yaml.ts';
export { encodeYaml } from './yaml-write.ts';
