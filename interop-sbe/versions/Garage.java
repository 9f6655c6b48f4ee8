// SPDX-License-Identifier: Apache-2.0
package io.taran.interop.sbe;

import io.taran.garage.VERSION.*;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The car that the tests of crates/sbe/codecs write, in one version of its schema. The tests generate a class of this file for
 * each version: a line that ends in names of versions is only in the classes of those.
 */
final class Garage_VERSION {
    static int write(final UnsafeBuffer buffer) {
        final CarEncoder car = new CarEncoder();
        car.wrapAndApplyHeader(buffer, 0, new MessageHeaderEncoder());
        car.serial(0x0102030405060708L)
            .modelYear(1998)
            .available(YesNo.Yes)
            .fuel(Fuel.Diesel)
            .plate("B TR 1")
            .putTrips(-1, 0, Integer.MAX_VALUE)
            .putOffsets((byte)-128, (byte)0, (byte)127)
            .percent((short)100)
            .debt(-250)
            .odd(CarEncoder.oddNullValue())
            .mass(1.5)
            .drag(-0.25f)
            .initial((byte)'Q')
            .priority(Priority.LOW_AT_ALL)
            .type((short)9);
        car.extras().clear().sunRoof(true).cruiseControl(true);
        car.wide().clear().last(true);
        car.putHash((short)0xDE, (short)0xAD, (short)0xBE, (short)0xEF);
        final EngineEncoder engine = car.engine();
        engine.capacity(1968).cylinders((short)4).maker("VAG").burns(Fuel.Petrol).state(State.Running);
        engine.booster().kind(Kind.Nitrous).power(210).flags().clear().hot(true);
        engine.worth().mantissa(123456);
        car.doors((short)5).colour(0xFF0000); // v1
        car.doors((short)3).colour(CarEncoder.colourNullValue()); // v2
        final EngineEncoder backup = car.backup(); // v1 v2
        backup.state(State.NULL_VAL).burns(Fuel.NULL_VAL); // v1 v2
        backup.worth().mantissa(MoneyEncoder.mantissaNullValue()); // v1 v2
        backup.capacity(50); // v1
        car.nickname("Bug").second(Fuel.Electric).putSeats((byte)1, (byte)2, (byte)3); // v2
        final CarEncoder.RepairsEncoder repairs = car.repairsCount(3);
        for (int day = 10; day <= 30; day += 10) {
            final CarEncoder.RepairsEncoder repair = repairs.next().day(day);
            repair.cost().mantissa(day * 100L);
            repair.guarantee(YesNo.Yes); // v1
            repair.guarantee(YesNo.No); // v2
        }
        final CarEncoder.OwnersEncoder owners = car.ownersCount(3);
        owner(owners, 1999, "Ada");
        owner(owners, 2010, "Grace");
        owner(owners, 2020, "");
        car.maker("W\u00fcrth").putNotes(new byte[] {0, 1, 2, -1}, 0, 4);
        car.slogan("Vorsprung"); // v1
        car.slogan("L\u00e4uft"); // v2
        return MessageHeaderEncoder.ENCODED_LENGTH + car.encodedLength();
    }

    private static void owner(final CarEncoder.OwnersEncoder owners, final int since, final String name) {
        final CarEncoder.OwnersEncoder owner = owners.next().since(since);
        final CarEncoder.OwnersEncoder.DriversEncoder drivers = owner.driversCount(2);
        drivers.next().age((short)18).licence("A1");
        drivers.next().age((short)81).licence("");
        final CarEncoder.OwnersEncoder.FinesEncoder fines = owner.finesCount(since == 2010 ? 1 : 0);
        if (since == 2010) {
            fines.next().amount(-40);
            fines.paid(40); // v1
            fines.paid(CarEncoder.OwnersEncoder.FinesEncoder.paidNullValue()); // v2
        }
        owner.name(name);
    }

    static String read(final UnsafeBuffer buffer) {
        return new CarDecoder().wrapAndApplyHeader(buffer, 0, new MessageHeaderDecoder()).toString();
    }

    private Garage_VERSION() {
    }
}
