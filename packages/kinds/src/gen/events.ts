/** Facts about the types of `events`; made by scripts/facts/generate.mjs, do not edit. */
export const eventsFacts = `
@v1
#Event k n i=1.19
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta o
eventTime 2 meta.v1.MicroTime
series 3 *EventSeries e o
reportingController 4 string e
reportingInstance 5 string e
action 6 string e
reason 7 string e
regarding 8 core.v1.ObjectReference e o
related 9 *core.v1.ObjectReference e o
note 10 string e o
type 11 string e
deprecatedSource 12 core.v1.EventSource e o
deprecatedFirstTimestamp 13 meta.v1.Time e o
deprecatedLastTimestamp 14 meta.v1.Time e o
deprecatedCount 15 int32 e o
#EventSeries
count 1 int32
lastObservedTime 2 meta.v1.MicroTime
#EventList k i=1.19
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Event
@v1beta1
#Event k n i=1.8 d=1.22
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta o
eventTime 2 meta.v1.MicroTime
series 3 *EventSeries e o
reportingController 4 string e o
reportingInstance 5 string e o
action 6 string e o
reason 7 string e o
regarding 8 core.v1.ObjectReference e o
related 9 *core.v1.ObjectReference e o
note 10 string e o
type 11 string e o
deprecatedSource 12 core.v1.EventSource e o
deprecatedFirstTimestamp 13 meta.v1.Time e o
deprecatedLastTimestamp 14 meta.v1.Time e o
deprecatedCount 15 int32 e o
#EventSeries
count 1 int32
lastObservedTime 2 meta.v1.MicroTime
#EventList k i=1.8 d=1.22
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Event
`;
