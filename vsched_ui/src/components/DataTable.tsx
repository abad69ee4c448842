// SPDX-License-Identifier: Apache-2.0

import {
  Button,
  FormSelect,
  FormSelectOption,
  Pagination,
  SearchInput,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from '@patternfly/react-core';
import {
  Table,
  Tbody,
  Td,
  Th,
  Thead,
  Tr,
} from '@patternfly/react-table';
import {
  type ReactNode,
  memo,
  useDeferredValue,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import { useSearchParams } from 'react-router';

import { type Direction, Finder, type SortValue, sorted } from '../model/tables';
import { Empty, Failure, Loading, OutdatedNote } from './states';

export interface Column<T> {
  key: string;
  title: string;
  /** What rows are sorted by, and found by in the filter. */
  value: (row: T) => SortValue;
  /** What is shown; the value without it. */
  render?: (row: T) => ReactNode;
  /** More text that the filter finds. */
  text?: (row: T) => string;
  numeric?: boolean;
  help?: string;
}

export interface Facet<T> {
  key: string;
  title: string;
  value: (row: T) => string | readonly string[];
  options: readonly string[];
}

interface Props<T extends object> {
  /** Unique in its view; the address keeps sorting and filters by it. */
  id: string;
  label: string;
  rows: readonly T[] | undefined;
  error?: Error | null;
  /** When the rows were read, in ms, if they could not be read again. */
  readAt?: number | null;
  retry?: () => unknown;
  /** The same array each time: what it makes of rows is kept. */
  columns: readonly Column<T>[];
  rowKey: (row: T) => string;
  facets?: readonly Facet<T>[];
  sort?: { key: string; direction: Direction };
  /** Why there may be no rows. */
  empty?: ReactNode;
  pageSize?: number;
  /** Whether further rows are on their way. */
  incomplete?: boolean;
  actions?: ReactNode;
  /** The same function each time. */
  rowActions?: (row: T) => ReactNode;
  /** Without filter and pages: the first rows of a list that has both. */
  plain?: boolean;
}

const PAGE_SIZE = 25;
/** The address has what was typed once typing pauses. */
const PAUSE_MS = 250;

/** A table that sorts, filters and pages rows that are all here. */
export function DataTable<T extends object>(props: Props<T>) {
  const { id, columns, facets = [], plain = false } = props;
  // Typing does not wait until the table has sorted what is there. Whether
  // that is all is of the same rows.
  const rows = useDeferredValue(props.rows);
  const incomplete = useDeferredValue(props.incomplete ?? false);
  const [address, setAddress] = useSearchParams();
  const name = (key: string) => `${id}.${key}`;
  const set = (changes: Record<string, string | null>) => {
    setAddress(
      () => {
        // Not the address as it was shown last: a change may not be shown yet.
        const after = new URLSearchParams(window.location.search);
        for (const [key, value] of Object.entries(changes)) {
          if (value === null || value === '') {
            after.delete(name(key));
          } else {
            after.set(name(key), value);
          }
        }
        return after;
      },
      { replace: true },
    );
  };

  // It changes the address as it is when it is called.
  const latestSet = useRef(set);
  useEffect(() => {
    latestSet.current = set;
  });

  // Typing does not wait for the address.
  const addressed = address.get(name('q')) ?? '';
  const [filter, setFilter] = useState(addressed);
  const written = useRef(addressed);
  useEffect(() => {
    if (addressed !== written.current) {
      written.current = addressed;
      setFilter(addressed);
    }
  }, [addressed]);
  useEffect(() => {
    if (filter === written.current) {
      return;
    }
    const timer = window.setTimeout(() => {
      written.current = filter;
      latestSet.current({ q: filter, page: null });
    }, PAUSE_MS);
    return () => window.clearTimeout(timer);
  }, [filter]);
  const deferredFilter = useDeferredValue(filter);
  const first = columns[0]?.key ?? '';
  const sortKey = address.get(name('sort')) ?? props.sort?.key ?? first;
  const direction = (address.get(name('dir')) ??
    (sortKey === props.sort?.key ? props.sort.direction : 'asc')) as Direction;
  const chosen = facets.map((facet) => address.get(name(facet.key)) ?? '');
  const size = Number(address.get(name('size'))) || (props.pageSize ?? PAGE_SIZE);
  const facetState = chosen.join('\n');

  const finder = useMemo(
    () => new Finder((row: T) => searchText(row, columns)),
    [columns],
  );
  const matching = useMemo(() => {
    let left = rows ?? [];
    facets.forEach((facet, index) => {
      const wanted = chosen[index];
      if (wanted) {
        left = left.filter((row) => [facet.value(row)].flat().includes(wanted));
      }
    });
    const words = deferredFilter.trim();
    return words === '' ? left : finder.find(left, words);
    // "facetState" stands for "chosen".
  }, [rows, finder, deferredFilter, facetState]);
  // To order what a filter leaves of a long list takes less than to order all.
  const found = useMemo(() => {
    const column = columns.find((one) => one.key === sortKey);
    return column === undefined
      ? matching
      : sorted(matching, column.value, direction);
  }, [matching, columns, sortKey, direction]);

  const pages = Math.max(1, Math.ceil(found.length / size));
  const page = Math.min(pages, Math.max(1, Number(address.get(name('page'))) || 1));
  const shown = plain ? found : found.slice((page - 1) * size, page * size);
  const filtered = filter !== '' || chosen.some((one) => one !== '');

  if (rows === undefined) {
    return props.error ? (
      <Failure error={props.error} retry={props.retry} />
    ) : (
      <Loading lines={8} />
    );
  }
  return (
    <div className="vs-table">
      {/* What an incomplete list lacks is stated below it. */}
      <OutdatedNote
        of={{
          data: rows,
          error: incomplete ? null : (props.error ?? null),
          readAt: props.readAt ?? null,
        }}
        what="The list"
      />
      {!plain && (
        <Toolbar className="vs-toolbar" inset={{ default: 'insetNone' }}>
          <ToolbarContent>
            <ToolbarItem>
              <SearchInput
                aria-label={`Filter ${props.label}`}
                placeholder="Filter"
                value={filter}
                onChange={(_, value) => setFilter(value)}
                onClear={() => setFilter('')}
              />
            </ToolbarItem>
            {facets.map((facet, index) => (
              <ToolbarItem key={facet.key}>
                <FormSelect
                  aria-label={`${facet.title} of ${props.label}`}
                  value={chosen[index]}
                  onChange={(_, value) =>
                    set({ [facet.key]: value, page: null })
                  }
                >
                  <FormSelectOption value="" label={`${facet.title}: any`} />
                  {facet.options.map((option) => (
                    <FormSelectOption
                      key={option}
                      value={option}
                      label={`${facet.title}: ${option}`}
                    />
                  ))}
                </FormSelect>
              </ToolbarItem>
            ))}
            {filtered && (
              <ToolbarItem>
                <Button
                  variant="link"
                  onClick={() => {
                    written.current = '';
                    setFilter('');
                    set({
                      q: null,
                      page: null,
                      ...Object.fromEntries(
                        facets.map((facet) => [facet.key, null]),
                      ),
                    });
                  }}
                >
                  Clear filters
                </Button>
              </ToolbarItem>
            )}
            {props.actions !== undefined && (
              <ToolbarItem>{props.actions}</ToolbarItem>
            )}
            <ToolbarItem variant="pagination" align={{ default: 'alignEnd' }}>
              <Pagination
                isCompact
                itemCount={found.length}
                page={page}
                perPage={size}
                perPageOptions={[25, 50, 100].map((value) => ({
                  title: String(value),
                  value,
                }))}
                titles={{ paginationAriaLabel: `Pages of ${props.label}` }}
                widgetId={`${id}-pages`}
                onSetPage={(_, value) => set({ page: String(value) })}
                onPerPageSelect={(_, value) =>
                  set({ size: String(value), page: null })
                }
              />
            </ToolbarItem>
          </ToolbarContent>
        </Toolbar>
      )}
      <div className="vs-scroll" tabIndex={0} role="region" aria-label={props.label}>
        <Table variant="compact" aria-label={props.label} gridBreakPoint="">
          <Thead>
            <Tr>
              {columns.map((column, index) => (
                <Th
                  key={column.key}
                  className={column.numeric ? 'vs-numeric' : ''}
                  modifier="nowrap"
                  {...(column.help === undefined
                    ? {}
                    : { info: { tooltip: column.help, ariaLabel: `About ${column.title}` } })}
                  sort={{
                    columnIndex: index,
                    sortBy: {
                      index: columns.findIndex((one) => one.key === sortKey),
                      direction,
                      defaultDirection: column.numeric ? 'desc' : 'asc',
                    },
                    onSort: (_, __, wanted) =>
                      set({ sort: column.key, dir: wanted, page: null }),
                  }}
                >
                  {column.title}
                </Th>
              ))}
              {props.rowActions !== undefined && <Th screenReaderText="Actions" />}
            </Tr>
          </Thead>
          <Tbody>
            {shown.map((row) => (
              <Row
                key={props.rowKey(row)}
                row={row}
                columns={columns}
                actions={props.rowActions}
              />
            ))}
          </Tbody>
        </Table>
      </div>
      {shown.length === 0 &&
        (incomplete ? (
          !props.error && <Loading lines={2} />
        ) : filtered ? (
          <Empty title="Nothing matches the filters" />
        ) : (
          (props.empty ?? <Empty title="Nothing here" />)
        ))}
      {incomplete && props.error && (
        <Failure error={props.error} retry={props.retry} />
      )}
      {incomplete && (
        <p className="vs-small" role="status">
          {props.error
            ? `The list is not complete: ${rows.length} rows were read.`
            : 'Reading the rest of the list …'}
        </p>
      )}
    </div>
  );
}

interface RowProps<T> {
  row: T;
  columns: readonly Column<T>[];
  actions: ((row: T) => ReactNode) | undefined;
}

function PlainRow<T>({ row, columns, actions }: RowProps<T>) {
  return (
    <Tr>
      {columns.map((column) => (
        <Td
          key={column.key}
          dataLabel={column.title}
          className={column.numeric ? 'vs-numeric' : ''}
        >
          {column.render?.(row) ?? String(column.value(row) ?? '–')}
        </Td>
      ))}
      {actions !== undefined && (
        <Td isActionCell className="vs-actions">
          {actions(row)}
        </Td>
      )}
    </Tr>
  );
}

// Most rows are the same when others change, or when the filter does.
const Row = memo(PlainRow) as typeof PlainRow;

function searchText<T>(row: T, columns: readonly Column<T>[]): string {
  return columns
    .map((column) => `${column.value(row) ?? ''} ${column.text?.(row) ?? ''}`)
    .join(' ');
}
