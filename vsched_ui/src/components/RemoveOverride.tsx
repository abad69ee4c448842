// SPDX-License-Identifier: Apache-2.0

import {
  Button,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from '@patternfly/react-core';

import { useChange } from '../api/mutations';
import { patchReservation } from '../api/singles';
import type { Reservation } from '../api/types';
import { useApi } from '../app/api';
import { wasWithdrawn } from '../model/changes';
import { titleOf } from '../model/identity';
import { Problems } from './states';

/**
 * Give an instance back to its flavor.
 *
 * @param reservation - as it is now; of generation 0 if there is none any
 *   more.
 */
export function RemoveOverride({
  reservation,
  close,
}: {
  reservation: Reservation;
  close: () => void;
}) {
  const { client } = useApi();
  const uuid = reservation.instance_uuid;
  const remove = useChange({
    send: () =>
      client.call('DELETE', '/v1/reservations/{instance_uuid}', {
        path: { instance_uuid: uuid },
        query: { generation: reservation.generation },
      }),
    keys: [['reservation', uuid]],
    show: (cache, answer) =>
      patchReservation(cache, uuid, answer?.reservation ?? null),
    done: close,
  });
  const nothingLeft = wasWithdrawn(remove.error, reservation.generation === 0);
  return (
    <Modal
      variant="small"
      isOpen
      onClose={close}
      aria-labelledby="remove-title"
      aria-describedby="remove-text"
    >
      <ModalHeader
        labelId="remove-title"
        title={`Remove the override of ${titleOf(reservation)}?`}
      />
      <ModalBody id="remove-text">
        What its flavor reserves holds again; nothing, if that reserves nothing.
        {nothingLeft ? (
          <p className="vs-small" role="status">
            There is no override any more: it was removed before.
          </p>
        ) : (
          <Problems error={remove.error} />
        )}
      </ModalBody>
      <ModalFooter>
        {!nothingLeft && (
          <Button
            variant="danger"
            isLoading={remove.isPending}
            isDisabled={remove.isPending}
            onClick={() => remove.mutate()}
          >
            Remove
          </Button>
        )}
        <Button variant="link" onClick={close}>
          {nothingLeft ? 'Close' : 'Keep it'}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
